import { z } from "zod";
import { responseFormat, type ChatBody, chatBody } from "#shared/protocol/job-bodies.ts";
import { Fault } from "#shared/fault/fault.ts";
import { modelId } from "#shared/model/model.ts";
import { readShape } from "../http/read-shape.ts";
import { innerMessage, outerMessage, checkToolOrder } from "./chat-messages.ts";
import { chosenTools, choiceOf, outerToolChoice } from "./tool-choice.ts";
import {
  dropEmptyLists,
  dropNulls,
  isEmptyList,
  objectsIn,
  insistOnSchemaSize,
  insistOnSentImage,
  samplingFields,
  stopStrings,
  streamFields,
  streamWish,
  type StreamWish,
} from "./request-fields.ts";
import { refuseUnsupportedFields } from "./unsupported-fields.ts";

const [text, jsonObject, jsonSchema] = responseFormat.options;

/** The response format as clients write it. Some clients send a schema together with `json_object`. */
export const outerResponseFormat = z.discriminatedUnion("type", [
  text,
  jsonObject.extend({ schema: jsonSchema.shape.json_schema.shape.schema }),
  jsonSchema,
]);

/** Returns the response format in the one form that machines get: any schema becomes a `json_schema`. */
export function innerResponseFormat(
  format: z.infer<typeof outerResponseFormat> | null | undefined,
): Pick<ChatBody, "response_format"> {
  if (format === null || format === undefined) return {};
  if (format.type !== "json_object" || format.schema === undefined) return { response_format: format };
  return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: format.schema } } };
}

export const messagesMax = 10_000;

const inner = chatBody.shape;

/** A chat completion request as OpenAI's clients write it. A null field counts as missing. */
export const chatRequest = z.object({
  model: modelId,
  messages: z.array(outerMessage).min(1).max(messagesMax),
  ...streamFields,
  tools: inner.tools.nullable(),
  tool_choice: outerToolChoice.nullish(),
  parallel_tool_calls: inner.parallel_tool_calls.nullable(),
  max_tokens: inner.max_tokens.nullable(),
  max_completion_tokens: inner.max_tokens.nullable(),
  ...samplingFields,
  n: inner.n.nullable(),
  logprobs: inner.logprobs.nullable(),
  top_logprobs: inner.top_logprobs.nullable(),
  logit_bias: inner.logit_bias.nullable(),
  response_format: outerResponseFormat.nullish(),
  reasoning_effort: inner.reasoning_effort.nullable(),
});
type ChatRequest = z.infer<typeof chatRequest>;

export interface ReadChatRequest extends StreamWish {
  readonly model: string;
  readonly body: ChatBody;
  /** The path of the first image. Undefined when the request has no image. */
  readonly imageParam: string | undefined;
  readonly ignored: readonly string[];
}

/**
 * Reads a chat request and translates it to the job body. Where OpenAI allows two forms of a field, the job body has
 * one.
 */
export function readChatRequest(input: Record<string, unknown>): ReadChatRequest {
  dropWhatSaysNothing(input);
  refuseUnsupportedFields(input);
  const { value, ignored } = readShape(chatRequest, input);
  const wish = streamWish(value);
  checkTogether(value);
  checkSchemas(value);
  const body = bodyOf(value);
  checkToolOrder(body.messages);
  return {
    model: value.model,
    ...wish,
    body,
    imageParam: checkImages(value),
    ignored,
  };
}

function dropWhatSaysNothing(input: Record<string, unknown>): void {
  dropNulls(input);
  dropEmptyLists(input, ["tools", "functions", "stop"]);
  for (const message of objectsIn(input["messages"])) {
    dropNulls(message, "content");
    dropEmptyLists(message, message["role"] === "assistant" ? ["tool_calls", "content"] : ["tool_calls"]);
    // A tool that returned nothing.
    if (message["role"] === "tool" && isEmptyList(message["content"])) message["content"] = "";
  }
  for (const tool of objectsIn(input["tools"])) dropNulls(tool["function"]);
  for (const format of objectsIn([input["response_format"]])) dropNulls(format["json_schema"]);
}

/** Returns the job body. `readChatRequest` has already removed null fields, so every remaining field has a value. */
function bodyOf(request: ChatRequest): ChatBody {
  const { model: _m, stream: _s, stream_options: _o, max_completion_tokens: current, ...rest } = request;
  const { messages, stop, tools, tool_choice: choice, response_format: format, ...same } = rest;
  const body = {
    ...same,
    messages: messages.map(innerMessage),
    ...chosenTools(tools, choice ? choiceOf(choice) : undefined),
    ...stopStrings(stop),
    ...innerResponseFormat(format),
  };
  return (typeof current === "number" ? { ...body, max_tokens: current } : body) as ChatBody;
}

/** Checks rules that involve two fields, which the schema of a single field cannot express. */
function checkTogether(request: ChatRequest): void {
  const { max_tokens: old, max_completion_tokens: current } = request;
  if (typeof old === "number" && typeof current === "number" && old !== current) {
    throw new Fault("invalid_value", {
      message: "'max_tokens' and 'max_completion_tokens' differ; send only 'max_completion_tokens'.",
      param: "max_tokens",
    });
  }
  if (typeof request.top_logprobs === "number" && request.logprobs !== true) {
    throw new Fault("invalid_value", {
      message: "'top_logprobs' is only allowed when 'logprobs' is true.",
      param: "top_logprobs",
    });
  }
}

function checkSchemas({ tools, response_format: format }: ChatRequest): void {
  for (const [place, tool] of (tools ?? []).entries()) {
    insistOnSchemaSize(tool.function.parameters, `tools[${place}].function.parameters`);
  }
  if (format?.type === "json_schema") {
    insistOnSchemaSize(format.json_schema.schema, "response_format.json_schema.schema");
  }
  if (format?.type === "json_object") insistOnSchemaSize(format.schema, "response_format.schema");
}

/** Returns the path of the request's first image. Every image must be sent inside the request. */
function checkImages(request: ChatRequest): string | undefined {
  let first: string | undefined;
  for (const [place, message] of request.messages.entries()) {
    if (message.role !== "user" || typeof message.content === "string") continue;
    for (const [part, content] of message.content.entries()) {
      if (content.type !== "image_url") continue;
      const param = `messages[${place}].content[${part}]`;
      first ??= param;
      insistOnSentImage(content.image_url.url, `${param}.image_url.url`);
    }
  }
  return first;
}
