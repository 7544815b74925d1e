import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import type { OwnSampling } from "#shared/protocol/model.ts";
import { readShape } from "../../http/read-json.ts";
import {
  dropEmptyLists,
  dropNulls,
  dropNullsAt,
  dropUnset,
  givenFields,
  objectsIn,
  assertSchemaSize,
  invalidValue,
  refuseFields,
  streamChoice,
  verbosity,
} from "../../requests/request-fields.ts";
import { chosenTools } from "../../chats/request-tools.ts";
import { isSlowToCount, messagesMax, readAsChat, type ReadChatRequest } from "../../chats/read-chat.ts";
import type { ReadOptions, ReadRequest, Reads } from "../../requests/read-request.ts";
import { conversationOf, type PlacedItems, shownImages } from "./conversation.ts";
import { storedResponseBytesMax } from "./kept-responses.ts";
import {
  type BegunTurn,
  conversationNotFound,
  type EarlierTurns,
  earlierTurns,
  isConversationId,
  isResponseId,
  resolveReferences,
  responseNotFound,
  type StoredTurns,
  tooLong,
} from "./stored-turns.ts";
import {
  innerTextFormat,
  isOwnTool,
  fieldsOfStored,
  unsupportedResponseFields,
  type InputItem,
  responseRequest,
  type ResponseRequest,
  type CalledTool,
} from "./response-schema.ts";
import { choiceOf, grammarsIn, innerTools, repeatedCharactersMax, shownTool } from "./response-tools.ts";
import type { InnerTools } from "./response-tools.ts";

const logprobsIncluded = "message.output_text.logprobs";

/** The parts of a request that its answer needs. */
export interface ResponseForm {
  readonly terms: ResponseTerms;
}

export const reads: Reads = {
  response: { read: (input, options) => responseOf(input, options) },
  "response-count": { read: (input, options) => responseOf(input, options, true), isSlow: isSlowToCount },
};

/** Reads a response request as a chat. Its machine sends answer events, and this gateway renders them for the API. */
function responseOf(input: Record<string, unknown>, { stored, promptSeed }: ReadOptions, counts = false): ReadRequest {
  return readAsChat(readResponseRequest(input, stored), { promptSeed, foldsSystem: true, counts });
}

/** The stored turns that a request names; undefined for a key whose responses are not stored. */
export type Stored = StoredTurns | undefined;

/** Reads a request of the Responses API and translates it to the job body, which is a chat. */
export function readResponseRequest(input: Record<string, unknown>, stored?: Stored): ReadChatRequest<ResponseForm> {
  dropEmptyFields(input);
  refuseUnsupported(input, stored);
  resolveReferences(input["input"], stored);
  const { value, ignored } = readShape(responseRequest, input);
  const { items: earlier, ...before } = turnsBefore(value, stored);
  const { stream } = streamChoice(value);
  assertLogprobs(value);
  const inside = innerTools(value.tools ?? []);
  const own: readonly InputItem[] =
    typeof value.input === "string" ? [{ type: "message", role: "user", content: value.input }] : value.input;
  const mayStore = stored !== undefined && value.store !== false;
  const terms = termsOf(value, { called: inside.called, begun: mayStore ? begunTurn(own, before) : undefined });
  const items = allItems(own, earlier);
  const format = value.text?.format;
  if (format?.type === "json_schema") assertSchemaSize(format.schema, "text.format.schema");
  assertTerms(terms, value);
  // No response is stored, or this one is too large for it.
  const isLost = terms.begun === undefined && (mayStore || value.store === true);
  return {
    model: value.model,
    stream,
    body: bodyOf(value, { inside, items }),
    ...shownImages(items),
    ignored: [...ignored, ...ignoredWishes(value), ...(isLost ? ["store"] : [])],
    form: { terms },
  };
}

/** Returns the turns of the conversation or up to the response that a request goes on from. */
function turnsBefore(request: ResponseRequest, stored: StoredTurns = new Map()): EarlierTurns {
  const { conversation, previous_response_id: previous, store } = request;
  if (!conversation) {
    if (typeof previous !== "string") return { before: [], items: [] };
    const turns = isResponseId(previous) ? earlierTurns(previous, stored) : undefined;
    if (turns === undefined) throw responseNotFound("previous_response_id");
    return turns;
  }
  if (typeof previous === "string")
    throw invalidValue("conversation", "Send either 'conversation' or 'previous_response_id', not both.");
  if (store === false) throw invalidValue("store", "'store' can only be true with 'conversation', which is stored.");
  const id = typeof conversation === "string" ? conversation : conversation.id;
  const turns = isConversationId(id) ? earlierTurns(id, stored) : undefined;
  if (turns === undefined) throw conversationNotFound("conversation");
  return { ...turns, conversation: id };
}

/** Returns the turn to store; undefined if the request's own part is too large already. */
function begunTurn(own: readonly InputItem[], turns: Omit<BegunTurn, "input">): BegunTurn | undefined {
  const input = JSON.stringify(own);
  return input.length > storedResponseBytesMax ? undefined : { ...turns, input };
}

/** Returns the items of earlier turns in front of a request's own. */
function allItems(own: readonly InputItem[], earlier: readonly InputItem[]): PlacedItems {
  if (earlier.length + own.length <= messagesMax) return { items: [...earlier, ...own], earlier: earlier.length };
  const bound = `'input' and the stored turns before it must hold at most ${messagesMax} items (messagesMax)`;
  throw tooLong("array_above_max_length", bound);
}

function refuseUnsupported(request: Record<string, unknown>, stored: Stored): void {
  refuseFields(request, unsupportedResponseFields);
  if (stored === undefined) refuseFields(request, fieldsOfStored);
  for (const wished of objectsIn([request["text"]])) refuseFields(wished, { verbosity }, "text.");
}

function dropEmptyFields(input: Record<string, unknown>): void {
  dropNulls(input);
  dropEmptyLists(input, ["tools", "include"]);
  dropUnset(input);
  dropNullsAt(input, ["input", "input.content", "input.output", "tools", "tools.tools"]);
  dropNullsAt(input, ["text", "text.format", "reasoning", "stream_options", "tool_choice"]);
  for (const reasoning of objectsIn([input["reasoning"]])) dropUnset(reasoning);
}

function bodyOf(
  request: ResponseRequest,
  { inside, items }: { readonly inside: InnerTools; readonly items: PlacedItems },
): ChatBody {
  const { tool_choice: choice, text: wished, reasoning } = request;
  const { parallel_tool_calls, max_output_tokens: max_tokens, temperature, top_p, top_logprobs } = request;
  const logprobs = request.include?.includes(logprobsIncluded) === true ? true : undefined;
  return {
    messages: conversationOf(request.instructions, items),
    ...chosenTools(inside.tools, choice ? choiceOf(choice, inside) : undefined),
    ...givenFields({
      parallel_tool_calls,
      max_tokens,
      temperature,
      top_p,
      logprobs,
      top_logprobs: logprobs && top_logprobs,
      reasoning_effort: reasoning?.effort,
    }),
    ...innerTextFormat(wished?.format),
  };
}

/** Checks a rule that involves two fields, which the schema of a single field cannot express. */
function assertLogprobs({ top_logprobs: others, include }: ResponseRequest): void {
  if (others && include?.includes(logprobsIncluded) !== true) {
    throw invalidValue("top_logprobs", `'top_logprobs' is only allowed when 'include' names '${logprobsIncluded}'.`);
  }
}

function assertTerms({ repeated }: ResponseTerms, { instructions, text, tools }: ResponseRequest): void {
  if (repeated.length <= repeatedCharactersMax) return;
  const lengths = Object.entries({ instructions, text, tools }).map(
    ([field, value]) => [JSON.stringify(value ?? null).length, field] as const,
  );
  const [[, param] = [0, "tools"]] = lengths.toSorted(([a], [b]) => b - a);
  throw new Fault("string_too_long", {
    message: `A response repeats '${param}', which may come to ${repeatedCharactersMax} characters as JSON (repeatedCharactersMax); ask at /v1/chat/completions, which repeats nothing.`,
    param,
  });
}

/**
 * Returns the paths of fields that clients send by habit and that are ignored:
 * - web search tools;
 * - grammars of custom tools, which the model reads and no runtime enforces;
 * - `include` of unsupported tools' output, or of encrypted reasoning;
 * - `truncation: "auto"`: input that is too long is an error here;
 * - a concise reasoning summary.
 */
function ignoredWishes({ include, tools, truncation, reasoning }: ResponseRequest): string[] {
  return [
    ...(include ?? []).flatMap((each, index) => (each === logprobsIncluded ? [] : [`include[${index}]`])),
    ...(tools ?? []).flatMap((tool, index) =>
      isOwnTool(tool) ? grammarsIn(tool, `tools[${index}]`) : [`tools[${index}]`],
    ),
    ...(truncation === "auto" ? ["truncation"] : []),
    ...(reasoning?.summary === "concise" ? ["reasoning.summary"] : []),
  ];
}

/** The options of rendering a response, and the request fields that the response repeats. */
export interface ResponseTerms {
  /**
   * The kind of item that carries the reasoning. A client that asks for a summary reads only the summary, and gets the
   * full reasoning in it.
   */
  readonly thoughts: "reasoning" | "summary";
  /** The functions and custom tools, by the names that machines get. */
  readonly called: ReadonlyMap<string, CalledTool>;
  /**
   * The repeated fields of the JSON object, serialized once because they are sent several times. They hold the client's
   * values digit by digit. A field that the client left to the model has null or its default.
   */
  readonly repeated: string;
  readonly sampling: OwnSampling;
  /** The turn that is stored with the response; undefined if it is not. */
  readonly begun?: BegunTurn | undefined;
}

function termsOf(request: ResponseRequest, { called, begun }: Pick<ResponseTerms, "called" | "begun">): ResponseTerms {
  const { instructions, metadata, reasoning, text, tool_choice: choice, tools } = request;
  const summary = reasoning?.summary ?? null;
  const repeated = {
    // No response continues without its client, and no input is truncated.
    access_programs: null,
    // No key is kept, no tier chosen and no penalty sent.
    max_tool_calls: null,
    prompt_cache_key: null,
    safety_identifier: null,
    service_tier: "default",
    frequency_penalty: 0,
    presence_penalty: 0,
    background: false,
    conversation: begun?.conversation === undefined ? null : { id: begun.conversation },
    previous_response_id: request.previous_response_id ?? null,
    truncation: "disabled",
    instructions: instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    metadata: metadata ?? {},
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    reasoning: { effort: reasoning?.effort ?? null, summary },
    text: { format: text?.format ?? { type: "text" } },
    tool_choice: choice ?? "auto",
    tools: (tools ?? []).filter(isOwnTool).map(shownTool),
    top_logprobs: request.top_logprobs ?? 0,
  };
  return {
    called,
    begun,
    sampling: givenFields({ temperature: request.temperature, top_p: request.top_p }),
    thoughts: summary === null ? "reasoning" : "summary",
    repeated: JSON.stringify(repeated).slice(1, -1),
  };
}
