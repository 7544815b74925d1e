import { z } from "zod";
import * as requests from "./media-request.ts";
import { count, maybeText, text, typed } from "../answer-parts.ts";
import { type ApiDescription, type OperationRest, post } from "../description.ts";
import { example, sample } from "../example-requests.ts";

const loose = z.looseObject({});
const parts = z.array(loose).optional();
const transcription = z
  .object({
    text,
    language: maybeText,
    duration: z.union([z.number(), text]).optional(),
    segments: parts,
    words: parts,
    usage: loose.optional(),
  })
  .describe("The text as the model's server tells it. `text`, `srt` and `vtt` come as a plain text instead.");
const usage = typed("tokens", { input_tokens: count, output_tokens: count, total_tokens: count }).optional();
const transcriptionEvent = z.discriminatedUnion("type", [
  typed("transcript.text.delta", { delta: text }),
  typed("transcript.text.done", { text, usage }),
]);
const speechEvent = z.discriminatedUnion("type", [
  typed("speech.audio.delta", { audio: text }),
  typed("speech.audio.done", { usage }),
]);
const madeImage = z.object({ b64_json: maybeText, url: maybeText, revised_prompt: maybeText });
const imageList = z.object({ created: count, data: z.array(madeImage) });
const moderationList = z.looseObject({ results: z.array(z.looseObject({ flagged: z.boolean() })) });

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
