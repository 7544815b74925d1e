import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { chatBody, stopsMax, stopText, type ChatBody, type imagePart } from "#shared/protocol/job-bodies.ts";
import type { RemoteImage } from "../images/image-fetcher.ts";

/**
 * Deletes null fields, so that a null counts as a missing field. Clients write every field that they know, and send an
 * answer back unchanged. In the field `kept`, null has a meaning and stays. Non-objects are left to the validator:
 * iterating a string of many megabytes here would visit every character.
 */
export function dropNulls(holder: unknown, kept?: string): void {
  if (typeof holder !== "object" || holder === null || Array.isArray(holder)) return;
  for (const field of Object.keys(holder)) {
    if (Reflect.get(holder, field) === null && field !== kept) Reflect.deleteProperty(holder, field);
  }
}

/**
 * Deletes the null fields of the objects at `paths`. A step of a path leads into an object, or into each object of a list.
 */
export function dropNullsAt(request: Record<string, unknown>, paths: readonly string[]): void {
  for (const path of paths) {
    let holders = [request];
    for (const step of path.split(".")) {
      holders = holders.flatMap(({ [step]: inside }) => objectsIn(Array.isArray(inside) ? inside : [inside]));
    }
    for (const holder of holders) dropNulls(holder);
  }
}

/** Deletes the named fields that are empty lists. Frameworks send an empty list for a parameter that was never set. */
export function dropEmptyLists(holder: Record<string, unknown>, fields: readonly string[]): void {
  for (const field of fields) {
    if (isEmptyList(holder[field])) Reflect.deleteProperty(holder, field);
  }
}

/** Deletes values by which clients say that a field is not set: a limit of -1 tokens, empty stops, a default effort. */
export function dropUnset(request: Record<string, unknown>): void {
  for (const field of ["max_tokens", "max_completion_tokens", "max_output_tokens"]) {
    if (request[field] === -1) Reflect.deleteProperty(request, field);
  }
  const { stop } = request;
  if (Array.isArray(stop)) request["stop"] = stop.filter((each) => each !== "");
  if (stop === "" || isEmptyList(request["stop"])) Reflect.deleteProperty(request, "stop");
  for (const field of ["reasoning_effort", "effort"]) {
    if (request[field] === "default") Reflect.deleteProperty(request, field);
  }
}

export function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Returns the objects in a list. Returns an empty list when `list` is not a list. */
export function objectsIn(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter((each) => typeof each === "object" && each !== null) : [];
}

/** Returns the fault of a value that makes no sense at `param`. */
export function invalidValue(param: string, message: string): Fault {
  return new Fault("invalid_value", { message, param });
}

/** Returns the fields of a job's body that have a value. */
export function givenFields(fields: Readonly<Record<string, unknown>>): Partial<ChatBody> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

/** The parsed fields of a schema's shape. */
export type FieldsOf<Shape extends z.ZodRawShape> = z.infer<z.ZodObject<Shape>>;

/** The request fields about streaming as OpenAI's clients write them. */
export const streamFields = {
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
};

export function streamChoice({ stream, stream_options: options }: FieldsOf<typeof streamFields>) {
  if (options && stream !== true) {
    throw invalidValue("stream_options", "'stream_options' is only allowed when 'stream' is true.");
  }
  return { stream: stream ?? false, includeUsage: options?.include_usage ?? false };
}

/** The field by which clients of OpenRouter ask for usage, which then tells the cost. */
export const costField = { usage: z.object({ include: z.boolean().nullish() }).nullish() };

/** Returns how a completion is streamed, and what its usage tells. */
export function completionChoice(request: FieldsOf<typeof streamFields & typeof costField>) {
  const { stream, includeUsage } = streamChoice(request);
  const tellsCost = request.usage?.include === true;
  return { stream, includeUsage: includeUsage || tellsCost, tellsCost };
}

/** The stop strings as OpenAI's clients write them: one string or several. Empty ones are left out before. */
const outerStopText = z.string().max(stopText.maxLength ?? Infinity);
const outerStop = z.union([outerStopText, z.array(outerStopText).max(stopsMax)]).nullish();

const inner = chatBody.shape;

/** The sampling fields of chats and legacy completions as OpenAI's clients write them. */
export const samplingFields = {
  temperature: inner.temperature.nullable(),
  top_p: inner.top_p.nullable(),
  frequency_penalty: inner.frequency_penalty.nullable(),
  presence_penalty: inner.presence_penalty.nullable(),
  seed: inner.seed.nullable(),
  stop: outerStop,
};

export function stopStrings(stop: z.infer<typeof outerStop>): { readonly stop?: string[] } {
  if (stop === null || stop === undefined) return {};
  return { stop: typeof stop === "string" ? [stop] : stop };
}

/** Refuses token ids as input. Token ids belong to one tokenizer, and clients tokenize texts with OpenAI's. */
export function refuseTokens(input: unknown, param: string): void {
  const [first] = Array.isArray(input) ? input : [];
  const isTokens = typeof first === "number" || (Array.isArray(first) && typeof first[0] === "number");
  if (!isTokens) return;
  throw new Fault("invalid_type", {
    message: `'${param}' must be text, not tokens: the tokens of one model are not those of another (in LangChain: check_embedding_ctx_length=False).`,
    param,
  });
}

/** Maximum length of one JSON schema of a request, as JSON. Runtimes compile it to a grammar and run its patterns. */
export const schemaCharactersMax = 262_144;

export function assertSchemaSize(schema: object | undefined, param: string): void {
  if (schema === undefined || JSON.stringify(schema).length <= schemaCharactersMax) return;
  throw new Fault("string_too_long", {
    message: `'${param}' must have at most ${schemaCharactersMax} characters as JSON (schemaCharactersMax).`,
    param,
  });
}

const imageUrl = /^(?:data:image\/[a-z0-9.+-]+;base64,|https:\/\/)/i;

/**
 * Refuses an image that is neither a data URL nor a URL that this gateway may fetch. Machines fetch nothing: a URL could
 * point into somebody's private network.
 */
function assertSentImage(url: string, param: string): void {
  if (imageUrl.test(url.slice(0, 100))) return;
  throw invalidValue(
    param,
    "An image must be a data URL, 'data:image/png;base64,…', or begin with https:// where the operator allows it.",
  );
}

/** The detail in which an image is read, as OpenAI's clients write it. */
export const imageDetail = z.enum(["auto", "low", "high", "original"]).nullish();

/** Returns an image as machines get it. The detail `original` becomes `high`, the highest that any runtime supports. */
export function innerImage(url: string, detail?: z.infer<typeof imageDetail>): z.infer<typeof imagePart> {
  if (!detail) return { type: "image_url", image_url: { url } };
  return { type: "image_url", image_url: { url, detail: detail === "original" ? "high" : detail } };
}

export interface RequestImages {
  /** The path of the first image. Undefined when the request has no image. */
  readonly imageParam: string | undefined;
  /** The images that are named by a URL, and have to be fetched. */
  readonly remoteImages?: readonly RemoteImage[] | undefined;
}

/** The images of a request, as its reader finds them. */
export class FoundImages {
  #first: string | undefined;
  readonly #remote: RemoteImage[] = [];

  /** Adds the image at `param`, whose URL stands at `urlParam`. */
  add(url: string, param: string, urlParam: string): void {
    assertSentImage(url, urlParam);
    this.#first ??= param;
    if (/^https:\/\//i.test(url.slice(0, 8))) this.#remote.push({ url, param: urlParam });
  }

  /** Returns the path of the first image, and the images that have to be fetched. Both may be undefined. */
  fields(): RequestImages {
    return { imageParam: this.#first, remoteImages: this.#remote.length > 0 ? this.#remote : undefined };
  }
}

interface Unsupported {
  /** The reason, as the end of a sentence that begins with the field's name. */
  readonly why: string;
  /** True if the value asks for nothing beyond the normal answer. */
  readonly isNeutral?: (value: unknown) => boolean;
  /** True if the value is a mere preference, which is ignored by name. */
  readonly isIgnored?: (value: unknown) => boolean;
}

/** Fields of an outer API that would change the answer in an unsupported way. All others are honoured or ignored. */
export type UnsupportedFields = Readonly<Record<string, Unsupported>>;

export const verbosity: Unsupported = {
  why: "can only be 'low' or 'medium' here",
  isNeutral: (value) => value === "medium",
  isIgnored: (value) => value === "low",
};
export const onlyInChats: Unsupported = { why: "is a field of chats; ask at /v1/chat/completions" };

/** Refuses a request that has an unsupported field. Removes fields with a neutral value. */
export function refuseFields(holder: Record<string, unknown>, fields: UnsupportedFields, path = ""): void {
  for (const field of Object.keys(fields)) {
    const value = holder[field];
    const unsupported = value === undefined ? undefined : fields[field];
    if (unsupported === undefined || unsupported.isIgnored?.(value)) continue;
    const { why, isNeutral } = unsupported;
    if (isNeutral?.(value) !== true) {
      const param = path + field;
      const code = isNeutral === undefined ? "unsupported_parameter" : "unsupported_value";
      throw new Fault(code, { message: `'${param}' ${why}.`, param });
    }
    Reflect.deleteProperty(holder, field);
  }
}
