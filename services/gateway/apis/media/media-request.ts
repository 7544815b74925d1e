import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import { abilityAt, encodeMediaBody } from "#shared/protocol/media-body.ts";
import type { MediaBody, MediaHead, MediaPath } from "#shared/protocol/media-body.ts";
import { imagePart, textPart } from "#shared/protocol/job-bodies.ts";
import { type FurtherAbility, modelId } from "#shared/protocol/model.ts";
import { FormFile } from "../../http/read-form.ts";
import { readShape } from "../../http/read-json.ts";
import { jobBytes, needsOfInput, type Reading, type ReadRequest, type Reads } from "../../requests/read-request.ts";
import { type MediaSize, type MediaUnit, sizeIn } from "./media-price.ts";
import { dropNulls, invalidValue, refuseFields, type UnsupportedFields } from "../../requests/request-fields.ts";

/** Bounds the text that is spoken. OpenAI allows 4,096 characters; servers of one's own cut a text into sentences. */
export const speechCharactersMax = 65_536;
/** Bounds a text that steers an answer: a prompt, or instructions for a voice. */
export const mediaPromptCharactersMax = 32_000;
/** OpenAI's bounds. */
const imagesMax = 10;
const imagesSentMax = 16;
/** Bounds the texts that are judged at once. */
const textsMax = 2_048;

const file = z
  .custom<FormFile>((value) => value instanceof FormFile, { params: { expected: "a file" } })
  .meta({ type: "string", format: "binary" });
const word = z.string().min(1).max(100);
const text = z.string().min(1);
const prompt = z.string().max(mediaPromptCharactersMax);
const modelFor = (ability: FurtherAbility): typeof modelId =>
  modelId.describe(`The id of a model whose \`x_capabilities\` hold \`${ability}\`.`);

const audioFields = {
  model: modelFor("transcription"),
  file: file.describe("The recording, in a format that the model's server reads."),
  prompt: prompt.nullish().describe("A text that shows the style, or what was said before."),
  response_format: z.enum(["json", "text", "srt", "verbose_json", "vtt"]).nullish(),
  temperature: z.number().min(0).max(1).nullish(),
};

/** A request for the text of a recording, as OpenAI's clients write it. */
export const transcriptionRequest = z.object({
  ...audioFields,
  language: word.nullish().describe("The language that is spoken, such as `en`."),
  "timestamp_granularities[]": z
    .array(z.enum(["word", "segment"]))
    .min(1)
    .max(2)
    .nullish(),
  "include[]": z
    .array(z.enum(["logprobs"]))
    .max(1)
    .nullish(),
  stream: z.boolean().nullish().describe("True if the text is to come piece by piece, where the server can."),
});

/** A request for the English text of a recording. */
export const translationRequest = z.object(audioFields);

/** A request for a spoken text. */
export const speechRequest = z.object({
  model: modelFor("speech"),
  input: z.string().min(1).max(speechCharactersMax).describe("The text to speak."),
  voice: z.string().min(1).max(1_000).nullish().describe("The voice, by its name at the server."),
  response_format: z.enum(["mp3", "opus", "aac", "flac", "wav", "pcm"]).nullish(),
  speed: z.number().min(0.25).max(4).nullish().describe("The pace: 1 is the usual one."),
  instructions: prompt.nullish().describe("The manner of speaking, for models that take one."),
  stream_format: z.enum(["audio", "sse"]).nullish(),
});

const imageFields = {
  model: modelFor("image"),
  prompt: prompt.min(1).describe("What the image shows."),
  n: z.int().min(1).max(imagesMax).nullish().describe("The number of images. 1 unless given."),
  size: word.nullish().describe("Width and height in pixels, such as `1024x1024`, or `auto`."),
  quality: word.nullish().describe("The quality, by the server's own words."),
  response_format: z.enum(["b64_json", "url"]).nullish(),
  background: word.nullish().describe("The background, such as `transparent`, where the server knows it."),
  output_format: word.nullish().describe("The format of an image, such as `png`."),
  output_compression: z.int().min(0).max(100).nullish().describe("The compression of an image, in percent."),
};

/** A request for images of a text. */
export const imageRequest = z.object({
  ...imageFields,
  style: word.nullish().describe("The style, by the server's own words."),
});

/** A request for images that are made of others. */
export const imageEditRequest = z.object({
  ...imageFields,
  image: file.optional().describe("The image."),
  "image[]": z.array(file).min(1).max(imagesSentMax).optional().describe("Several images, in place of `image`."),
  mask: file.optional().describe("An image whose transparent parts say where to change the first one."),
  input_fidelity: word.nullish().describe("How close to the images the answer stays, where the server knows it."),
});

/** A request for a judgement of texts, as OpenAI's clients write it. */
export const moderationRequest = z.object({
  model: modelFor("moderation").default("omni-moderation-latest"),
  input: z
    .union([
      text,
      z.array(text).min(1).max(textsMax),
      z
        .array(z.discriminatedUnion("type", [textPart, imagePart]))
        .min(1)
        .max(textsMax),
    ])
    .describe("What is judged: a text, a list of texts, or the texts and images of one message."),
});

/** The form of an answer: its own, as the runtime gives it, and its media type, as clients of OpenAI know it. */
export interface MediaAnswer {
  readonly form: MediaHead["answer"];
  readonly type: string;
  /** The size of the request; undefined if it costs its key nothing. */
  readonly size?: MediaSize | undefined;
}

const audioTypes = {
  mp3: "audio/mpeg",
  opus: "audio/ogg",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
};

export const eventStream = "text/event-stream; charset=utf-8";

const isFalse = (value: unknown): boolean => value === false;
const onlyOfTranscriptions = { why: "is a field of transcriptions; ask at /v1/audio/transcriptions" };
const notHere = { why: "is not supported here" };
const onlyWholeImages = {
  stream: { why: "is not supported here: images come whole", isNeutral: isFalse },
  partial_images: notHere,
};

/** An endpoint that a model's server answers by itself: the path at the machine, and how the request is read. */
export interface MediaEndpoint {
  readonly path: MediaPath;
  readonly schema: z.ZodType<Record<string, unknown> & { readonly model: string }>;
  /** The unit in which a request costs its key something; undefined if it costs nothing. */
  readonly unit?: MediaUnit;
  readonly unsupported: UnsupportedFields;
  /** True if the body is a form with files. */
  readonly takesForm?: boolean;
}

const endpoints = {
  transcription: {
    path: "/v1/audio/transcriptions",
    schema: transcriptionRequest,
    takesForm: true,
    unit: "second",
    unsupported: {
      chunking_strategy: { ...notHere, isNeutral: (value) => value === "auto" },
      "known_speaker_names[]": notHere,
      "known_speaker_references[]": notHere,
    },
  },
  translation: {
    path: "/v1/audio/translations",
    schema: translationRequest,
    takesForm: true,
    unit: "second",
    unsupported: {
      language: onlyOfTranscriptions,
      stream: { ...onlyOfTranscriptions, isNeutral: isFalse },
      "timestamp_granularities[]": onlyOfTranscriptions,
    },
  },
  speech: {
    path: "/v1/audio/speech",
    schema: speechRequest,
    unit: "character",
    unsupported: {},
  },
  image: { path: "/v1/images/generations", schema: imageRequest, unit: "image", unsupported: onlyWholeImages },
  "image-edit": {
    path: "/v1/images/edits",
    schema: imageEditRequest,
    takesForm: true,
    unit: "image",
    unsupported: onlyWholeImages,
  },
  moderation: { path: "/v1/moderations", schema: moderationRequest, unit: "character", unsupported: {} },
} satisfies Record<string, MediaEndpoint>;
export const mediaEndpoints: Readonly<Record<keyof typeof endpoints, MediaEndpoint>> = endpoints;

export const reads: Reads = Object.fromEntries(
  Object.entries(mediaEndpoints).map(([kind, endpoint]) => [kind, readingOf(endpoint)]),
);

/** Bytes of a request about speech or images that cost a machine about as much as a token of a prompt. */
const bytesPerWorkToken = 1_000;

/** Returns the reading of requests that a model's server answers by itself. */
export function readingOf(endpoint: MediaEndpoint): Reading {
  return { read: (input) => readMediaRequest(endpoint, input) };
}

/** Reads a request that a model's server answers by itself, and separates its files from its fields. */
function readMediaRequest(
  { path, schema, takesForm, unit, unsupported }: MediaEndpoint,
  input: Record<string, unknown>,
): ReadRequest<MediaAnswer> {
  if (takesForm === true) readNumbers(input);
  dropNulls(input);
  refuseFields(input, unsupported);
  const { value, ignored } = readShape(schema, input);
  const { model, stream_format: streamFormat, ...given } = value;
  checkTogether(path, given);
  const answer = streamFormat === "sse" ? { form: "audio" as const, type: eventStream } : answerOf(path, given);
  const media = { path, answer: answer.form, ...partsOf(given) };
  const job = jobBytes(encodeMediaBody(media));
  const bytes = job.body.byteLength;
  if (bytes > limits.jobBodyBytesMax) {
    const message = `The request has more than ${limits.jobBodyBytesMax} bytes for its machine (jobBodyBytesMax).`;
    throw new Fault("request_too_large", { message });
  }
  return {
    kind: "media",
    model,
    stream: answer.form === "transcript" || answer.form === "audio",
    ignored,
    needs: needsOfInput(abilityAt[path], Math.ceil(bytes / bytesPerWorkToken)),
    form: { ...answer, size: unit && sizeIn(unit, media) },
    ...job,
    promptTokens: 0,
    tokens: 0,
    // Its units are no tokens, which a window would bound.
    ceiling: { promptTokens: bytes, prompts: Infinity, answers: 1, answerTokens: undefined },
  };
}

/** Separates the files of a request from its fields. */
function partsOf(given: Readonly<Record<string, unknown>>): Pick<MediaBody, "fields" | "files" | "contents"> {
  const fields: Record<string, unknown> = {};
  const files: MediaHead["files"] = [];
  const contents: Uint8Array[] = [];
  for (const [field, each] of Object.entries(given)) {
    const sent = [each].flat().filter((one) => one instanceof FormFile);
    if (sent.length === 0) fields[field] = each;
    for (const { name, type, bytes } of sent) {
      files.push({ field, name, type, bytes: bytes.byteLength });
      contents.push(bytes);
    }
  }
  return { fields: fields as MediaHead["fields"], files, contents };
}

/** A form has texts alone. The fields that are numbers or switches in JSON are read as such. */
function readNumbers(form: Record<string, unknown>): void {
  for (const field of ["temperature", "n", "output_compression"]) {
    const value = form[field];
    if (typeof value === "string" && /^-?\d{1,9}(?:\.\d{1,9})?$/.test(value)) form[field] = Number(value);
  }
  const { stream } = form;
  if (typeof stream === "string" && /^(?:true|false)$/i.test(stream)) form["stream"] = stream.toLowerCase() === "true";
}

/** Checks rules that involve two fields, which the schema of a single field cannot express. */
function checkTogether(path: MediaPath, request: Readonly<Record<string, unknown>>): void {
  const { stream, response_format: format = "json", "timestamp_granularities[]": times } = request;
  const { "include[]": include } = request;
  if (times !== undefined && format !== "verbose_json") {
    const message = "'timestamp_granularities[]' is only allowed when 'response_format' is 'verbose_json'.";
    throw invalidValue("timestamp_granularities[]", message);
  }
  if (include !== undefined && (format !== "json" || stream === true)) {
    const message = "'include[]' is only allowed when 'response_format' is 'json' and 'stream' is not true.";
    throw invalidValue("include[]", message);
  }
  if (stream === true && format !== "json" && format !== "text")
    throw invalidValue("response_format", "'response_format' can only be 'json' or 'text' when 'stream' is true.");
  const { image, "image[]": images } = request;
  if (path === "/v1/images/edits" && image === undefined && images === undefined)
    throw new Fault("missing_required_parameter", { message: "Missing required parameter: 'image'.", param: "image" });
  if (image !== undefined && images !== undefined)
    throw invalidValue("image[]", "Send either 'image' or 'image[]', not both.");
}

/** Returns the form of the answer. Only transcriptions have `stream` left, since other requests are refused with it. */
function answerOf(path: MediaPath, request: Readonly<Record<string, unknown>>): MediaAnswer {
  const { stream, response_format: format } = request;
  if (path === "/v1/audio/speech")
    return { form: "audio", type: audioTypes[(format ?? "mp3") as keyof typeof audioTypes] };
  if (stream === true) return { form: "transcript", type: eventStream };
  if (format === "text" || format === "srt" || format === "vtt")
    return { form: "text", type: "text/plain; charset=utf-8" };
  return { form: "json", type: "application/json; charset=utf-8" };
}
