import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import { readShape } from "../../http/read-shape.ts";
import type { ReadChatRequest } from "../chat-request.ts";
import { chosenTools } from "../tool-choice.ts";
import { dropEmptyLists, dropNulls, objectsIn, insistOnSchemaSize } from "../request-fields.ts";
import { refuseFieldsOfResponses } from "../unsupported-fields.ts";
import { conversationOf, checkShownImages } from "./conversation.ts";
import { choiceOf, innerTools, type InnerTools } from "./inner-tools.ts";
import { innerTextFormat, isOwnTool, responseRequest, type ResponseRequest } from "./response-schema.ts";
import { termsOf, type ResponseTerms } from "./response-terms.ts";

export const metadataPairsMax = 16;
/** Maximum length of the request fields that a response repeats. A streamed response repeats them three times. */
export const repeatedCharactersMax = 512 * 1024;
const logprobsIncluded = "message.output_text.logprobs";

export interface ReadResponseRequest extends ReadChatRequest {
  readonly terms: ResponseTerms;
}

/** Reads a request of the Responses API and translates it to the job body, which is a chat. */
export function readResponseRequest(input: Record<string, unknown>): ReadResponseRequest {
  dropWhatSaysNothing(input);
  refuseFieldsOfResponses(input);
  const { value, ignored } = readShape(responseRequest, input);
  checkTogether(value);
  const inside = innerTools(value.tools ?? []);
  const terms = termsOf(value, inside.namespaced);
  const format = value.text?.format;
  if (format?.type === "json_schema") insistOnSchemaSize(format.schema, "text.format.schema");
  insistOnTerms(terms, value);
  return {
    model: value.model,
    stream: value.stream ?? false,
    includeUsage: true,
    body: bodyOf(value, inside),
    imageParam: checkShownImages(value.input),
    ignored: [...ignored, ...ignoredWishes(value)],
    terms,
  };
}

function dropWhatSaysNothing(input: Record<string, unknown>): void {
  dropNulls(input);
  dropEmptyLists(input, ["tools", "include"]);
  for (const item of objectsIn(input["input"])) {
    dropNulls(item);
    for (const part of [...objectsIn(item["content"]), ...objectsIn(item["output"])]) dropNulls(part);
  }
  for (const tool of objectsIn(input["tools"])) {
    dropNulls(tool);
    for (const inside of objectsIn(tool["tools"])) dropNulls(inside);
  }
  for (const field of ["text", "reasoning", "stream_options", "tool_choice"]) dropNulls(input[field]);
  for (const text of objectsIn([input["text"]])) dropNulls(text["format"]);
}

function bodyOf(request: ResponseRequest, inside: InnerTools): ChatBody {
  const { tool_choice: choice, text: wished, reasoning } = request;
  const { parallel_tool_calls, max_output_tokens: max_tokens, temperature, top_p, top_logprobs } = request;
  const logprobs = request.include?.includes(logprobsIncluded) === true ? true : undefined;
  const given = {
    parallel_tool_calls,
    max_tokens,
    temperature,
    top_p,
    logprobs,
    top_logprobs: logprobs && top_logprobs,
    reasoning_effort: reasoning?.effort,
  };
  return {
    messages: conversationOf(request),
    ...chosenTools(inside.tools.length > 0 ? inside.tools : undefined, choice ? choiceOf(choice, inside) : undefined),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null)),
    ...innerTextFormat(wished?.format),
  };
}

/** Checks rules that involve two fields, which the schema of a single field cannot express. */
function checkTogether({
  stream,
  stream_options: options,
  top_logprobs: others,
  include,
  metadata,
}: ResponseRequest): void {
  if (options && stream !== true) {
    throw new Fault("invalid_value", {
      message: "'stream_options' is only allowed when 'stream' is true.",
      param: "stream_options",
    });
  }
  if (others && include?.includes(logprobsIncluded) !== true) {
    throw new Fault("invalid_value", {
      message: `'top_logprobs' is only allowed when 'include' names '${logprobsIncluded}'.`,
      param: "top_logprobs",
    });
  }
  if (metadata && Object.keys(metadata).length > metadataPairsMax) {
    throw new Fault("invalid_value", {
      message: `'metadata' must have at most ${metadataPairsMax} fields (metadataPairsMax).`,
      param: "metadata",
    });
  }
}

function insistOnTerms({ repeated }: ResponseTerms, { instructions, text, tools }: ResponseRequest): void {
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
 * - `include` of unsupported tools' output, or of encrypted reasoning;
 * - `store`: no response is stored;
 * - `truncation: "auto"`: input that is too long is an error here;
 * - a concise reasoning summary.
 */
function ignoredWishes({ include, store, tools, truncation, reasoning }: ResponseRequest): string[] {
  return [
    ...(include ?? []).flatMap((each, place) => (each === logprobsIncluded ? [] : [`include[${place}]`])),
    ...(tools ?? []).flatMap((tool, place) => (isOwnTool(tool) ? [] : [`tools[${place}]`])),
    ...(store === true ? ["store"] : []),
    ...(truncation === "auto" ? ["truncation"] : []),
    ...(reasoning?.summary === "concise" ? ["reasoning.summary"] : []),
  ];
}
