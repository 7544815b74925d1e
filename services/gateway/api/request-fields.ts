import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { chatBody, stopsMax, stopText } from "#shared/protocol/job-bodies.ts";
import type { RemoteImage } from "../images/image-fetcher.ts";

/**
 * Deletes null fields, so that a null counts as a missing field. Clients write every field that they know, and send an
 * answer back unchanged. In the field `kept`, null has a meaning and stays. Non-objects are left to the validator:
 * iterating a string of many megabytes here would visit every character.
 */
export function dropNulls(holder: unknown, kept?: string): void {
  if (typeof holder !== "object" || holder === null || Array.isArray(holder)) return;
  for (const [field, value] of Object.entries(holder)) {
    if (value === null && field !== kept) Reflect.deleteProperty(holder, field);
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

/** The request fields about streaming as OpenAI's clients write them. */
export const streamFields = {
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
};

export interface StreamChoice {
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

export function streamChoice(request: {
  readonly stream?: boolean | null | undefined;
  readonly stream_options?: { readonly include_usage?: boolean | null | undefined } | null | undefined;
}): StreamChoice {
  const { stream, stream_options: options } = request;
  if (options && stream !== true) {
    throw new Fault("invalid_value", {
      message: "'stream_options' is only allowed when 'stream' is true.",
      param: "stream_options",
    });
  }
  return { stream: stream ?? false, includeUsage: options?.include_usage ?? false };
}

/** The stop strings as OpenAI's clients write them: one string or several. */
const outerStop = z.union([stopText, z.array(stopText).min(1).max(stopsMax)]).nullish();

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

export function insistOnSchemaSize(schema: object | undefined, param: string): void {
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
function insistOnSentImage(url: string, param: string): void {
  if (imageUrl.test(url.slice(0, 100))) return;
  throw new Fault("invalid_value", {
    message:
      "An image must be a data URL, 'data:image/png;base64,…', or begin with https:// where the operator allows it.",
    param,
  });
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
    insistOnSentImage(url, urlParam);
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

const verbosity: Unsupported = {
  why: "can only be 'low' or 'medium' here",
  isNeutral: (value) => value === "medium",
  isIgnored: (value) => value === "low",
};
const onlyWithChats: Unsupported = { why: "is a field of chats; a text is continued as it is" };

/** OpenAI's fields that would change the answer in an unsupported way. All other fields are honoured or ignored. */
export const unsupportedChatFields: Readonly<Record<string, Unsupported>> = {
  functions: { why: "was replaced by 'tools'; send those" },
  function_call: { why: "was replaced by 'tool_choice'; send that" },
  audio: { why: "asks for a spoken answer, and answers are text here" },
  modalities: {
    why: "can only be ['text'] here",
    isNeutral: (value) => Array.isArray(value) && value.every((each) => each === "text"),
  },
  web_search_options: { why: "asks for a search of the web, and models here know only what they are sent" },
  moderation: { why: "asks for a verdict on the answer, and nothing here gives one" },
  verbosity,
};

const unsupportedCompletionFields: Readonly<Record<string, Unsupported>> = {
  max_completion_tokens: { why: "is a field of chats; send 'max_tokens'" },
  response_format: onlyWithChats,
  grammar: onlyWithChats,
  structured_outputs: onlyWithChats,
  guided_json: onlyWithChats,
  guided_regex: onlyWithChats,
  guided_choice: onlyWithChats,
  guided_grammar: onlyWithChats,
};

const onlyInChats: Unsupported = { why: "is a field of chats; ask at /v1/chat/completions" };

/** Unsupported fields of the Responses API. */
export const unsupportedResponseFields: Readonly<Record<string, Unsupported>> = {
  previous_response_id: {
    why: "names an earlier response, and none is stored here, not even with 'store: true'; send the whole conversation in 'input'",
  },
  conversation: { why: "names a conversation that is kept, and none is kept here; send the whole of it in 'input'" },
  prompt: { why: "names a prompt that is kept, and none is kept here; send its text" },
  background: { why: "can only be false here: an answer ends with its client", isNeutral: (value) => value === false },
  moderation: { why: "asks for a verdict on the answer, and nothing here gives one" },
  n: { why: "can only be 1 here: a response is one answer", isNeutral: (value) => value === 1 },
  messages: { why: "is a field of chats; send 'input'" },
  max_tokens: { why: "is a field of chats; send 'max_output_tokens'" },
  max_completion_tokens: { why: "is a field of chats; send 'max_output_tokens'" },
  response_format: { why: "is a field of chats; send 'text.format'" },
  reasoning_effort: { why: "is a field of chats; send 'reasoning.effort'" },
  functions: { why: "was replaced by 'tools'; send those" },
  function_call: { why: "was replaced by 'tool_choice'; send that" },
  logprobs: { why: "is a field of chats; name 'message.output_text.logprobs' in 'include'" },
  stop: onlyInChats,
  seed: onlyInChats,
  logit_bias: onlyInChats,
  frequency_penalty: onlyInChats,
  presence_penalty: onlyInChats,
};

const onlyHere = (field: string): Unsupported => ({ why: `is a field of chats; send '${field}'` });

/** Unsupported fields of the Messages API. */
export const unsupportedMessagesFields: Readonly<Record<string, Unsupported>> = {
  mcp_servers: {
    why: "asks for calls of servers, and nothing here calls any; offer their tools in 'tools'",
    isNeutral: isEmptyList,
  },
  thread: { why: "names a conversation that is kept, and none is kept here; send the whole of it in 'messages'" },
  n: { why: "can only be 1 here: a message is one answer", isNeutral: (value) => value === 1 },
  max_completion_tokens: onlyHere("max_tokens"),
  stop: onlyHere("stop_sequences"),
  response_format: onlyHere("output_config.format"),
  reasoning_effort: onlyHere("output_config.effort"),
  parallel_tool_calls: onlyHere("tool_choice.disable_parallel_tool_use"),
  seed: onlyInChats,
  logit_bias: onlyInChats,
  logprobs: onlyInChats,
  frequency_penalty: onlyInChats,
  presence_penalty: onlyInChats,
};

const unsupportedTextFields: Readonly<Record<string, Unsupported>> = {
  verbosity,
};

const unsupportedMessageFields: Readonly<Record<string, Unsupported>> = {
  function_call: { why: "was replaced by 'tool_calls'; send those" },
  audio: { why: "names an earlier spoken answer, and answers are text here" },
};

/** Refuses a chat request that has an unsupported field. Removes fields with a neutral value. */
export function refuseUnsupportedFields(request: Record<string, unknown>): void {
  refuse(request, unsupportedChatFields, "");
  const { messages } = request;
  if (!Array.isArray(messages)) return;
  for (const [place, message] of messages.entries()) {
    if (typeof message !== "object" || message === null) continue;
    refuse(message, unsupportedMessageFields, `messages[${place}].`);
  }
}

/** Refuses a legacy completion request that has fields of chats. */
export function refuseFieldsOfChats(request: Record<string, unknown>): void {
  refuse(request, unsupportedCompletionFields, "");
}

export function refuseFieldsOfResponses(request: Record<string, unknown>): void {
  refuse(request, unsupportedResponseFields, "");
  const { text, input } = request;
  for (const wished of objectsIn([text])) refuse(wished, unsupportedTextFields, "text.");
  if (!Array.isArray(input)) return;
  const place = input.findIndex((item) => Reflect.get(Object(item), "type") === "item_reference");
  if (place === -1) return;
  throw new Fault("unsupported_value", {
    message: `'input[${place}]' refers to an item of an earlier response, and none is kept here; send the item itself, as clients do that are told 'store: false'.`,
    param: `input[${place}].type`,
  });
}

export function refuseFieldsOfMessages(request: Record<string, unknown>): void {
  refuse(request, unsupportedMessagesFields, "");
}

function refuse(holder: Record<string, unknown>, fields: Readonly<Record<string, Unsupported>>, path: string): void {
  for (const [field, { why, isNeutral, isIgnored }] of Object.entries(fields)) {
    const value = holder[field];
    if (value === undefined || isIgnored?.(value)) continue;
    if (isNeutral?.(value) !== true) {
      const param = path + field;
      const code = isNeutral === undefined ? "unsupported_parameter" : "unsupported_value";
      throw new Fault(code, { message: `'${param}' ${why}.`, param });
    }
    Reflect.deleteProperty(holder, field);
  }
}
