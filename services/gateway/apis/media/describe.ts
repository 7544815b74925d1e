import { z } from "zod";
import * as requests from "./media-request.ts";
import { count, text, typed } from "../answer-parts.ts";
import { type ApiDescription, type OperationRest, post } from "../description.ts";
import { example, sample } from "../example-requests.ts";

const loose = z.looseObject({});
const parts = z.array(loose).optional();
const transcription = z
  .object({
    text: text("All that was said."),
    language: text("The language, with `verbose_json`.").optional(),
    duration: z.union([z.number(), z.string()]).optional().describe("The length of the recording in seconds."),
    segments: parts.describe("The parts and their times, with `verbose_json`."),
    words: parts.describe("The words and their times, where they were asked for."),
    usage: loose.optional().describe("What the server counted: seconds, or tokens."),
  })
  .describe("The text as the model's server tells it. `text`, `srt` and `vtt` come as a plain text instead.");
const usage = typed("tokens", {
  input_tokens: count.describe("The tokens of the recording."),
  output_tokens: count.describe("The tokens of the text."),
  total_tokens: count,
});
const transcriptionEvent = z.discriminatedUnion("type", [
  typed("transcript.text.delta", { delta: text("The next piece of the text.") }),
  typed("transcript.text.done", {
    text: text("All of the text."),
    usage: usage.optional().describe("The tokens, where the server tells them."),
  }),
]);
const speechEvent = z.discriminatedUnion("type", [
  typed("speech.audio.delta", { audio: text("The next piece, as base64.") }),
  typed("speech.audio.done", { usage: usage.optional() }),
]);
const madeImage = z.object({
  b64_json: text("The image, as base64.").optional(),
  url: text("Its address at the model's server, which clients may not reach.").optional(),
  revised_prompt: text("The prompt as the server changed it.").optional(),
});
const imageList = z.object({ created: count, data: z.array(madeImage).describe("The images.") });
const judgement = z.looseObject({ flagged: z.boolean().describe("True if the text is harmful.") });
const moderationList = z.looseObject({ results: z.array(judgement) });

const { transcriptionRequest, translationRequest, speechRequest } = requests;
const { imageRequest, imageEditRequest, moderationRequest } = requests;

/** Returns an operation with the request as its endpoint reads it. */
function reads(id: string, kind: keyof typeof requests.mediaEndpoints, answers: Answers, rest?: OperationRest) {
  const { schema, unsupported: refuses } = requests.mediaEndpoints[kind];
  return post(id, kind, [schema, ...answers], { refuses, ...rest });
}
type Answers = readonly [answer: z.ZodType, chunk?: z.ZodType];

const sentence = { model: "kokoro", input: sample.why, voice: "af_heart", response_format: "wav" };
const sky = { model: "flux", prompt: "A blue sky.", size: "512x512", response_format: "b64_json" };

export const describeAudio: ApiDescription = {
  tag: "Audio",
  refusedAs: "media",
  schemas: [
    { transcriptionRequest, translationRequest, speechRequest, transcription, transcriptionEvent, speechEvent },
  ],
  operations: [
    reads("createTranscription", "transcription", [transcription, transcriptionEvent]),
    reads("createTranslation", "translation", [transcription]),
    reads("createSpeech", "speech", [z.string(), speechEvent], {
      media: "audio/mpeg",
      examples: { sentence: example("A sentence", sentence) },
    }),
  ],
};

export const describeImages: ApiDescription = {
  tag: "Images",
  refusedAs: "media",
  schemas: [{ imageRequest, imageEditRequest, imageList }],
  operations: [
    reads("createImage", "image", [imageList], { examples: { sky: example("One image", sky) } }),
    reads("createImageEdit", "image-edit", [imageList]),
  ],
};

export const describeModerations: ApiDescription = {
  tag: "Moderations",
  schemas: [{ moderationRequest, moderationList }],
  operations: [
    reads("createModeration", "moderation", [moderationList], {
      refusals: ["insufficient_permissions"],
      examples: { text: example("One text", { model: "guard", input: sample.why }) },
    }),
  ],
};
