import type { z } from "zod";
import type { ChatBody, ChatMessage, imagePart, textPart } from "#shared/protocol/job-bodies.ts";
import { readShape } from "../../http/read-json.ts";
import {
  FoundImages,
  type RequestImages,
  dropEmptyLists,
  dropNulls,
  dropNullsAt,
  dropUnset,
  innerImage,
  isEmptyList,
  assertSchemaSize,
  invalidValue,
  stopStrings,
  completionChoice,
  refuseFields,
  type UnsupportedFields,
} from "../../requests/request-fields.ts";
import type { Reads } from "../../requests/read-request.ts";
import { readAsChat, type ReadChatRequest } from "../../chats/read-chat.ts";
import { assertToolOrder, type ToolOrderErrors } from "../../chats/request-tools.ts";
import { functionCall } from "../../chats/custom-tools.ts";
import { innerChatFields, runtimeFields, withoutRuntimeFields } from "../../chats/runtime-fields.ts";
import type { CompletionForm } from "../../chats/runtime-fields.ts";
import {
  type ChatRequest,
  chatRequest,
  type OuterAssistantMessage,
  type outerMessage,
  type outerPart,
  type refusalPart,
  type thinkingPart,
  unsupportedChatFields,
} from "./chat-schema.ts";
import { type ChatTools, noTools, readTools } from "./chat-tools.ts";

/** Converts a message to the form that machines get. The role `developer` becomes `system`; a refusal becomes text. */
function innerMessage(message: z.infer<typeof outerMessage>): ChatMessage {
  switch (message.role) {
    case "developer":
      return { ...message, role: "system" };
    case "user":
    case "tool":
      return typeof message.content === "string"
        ? { ...message, content: message.content }
        : { ...message, content: message.content.map(innerPart) };
    case "assistant":
      return innerAssistant(message);
    default:
      return message;
  }
}

function innerAssistant({ content, refusal, reasoning, tool_calls, ...message }: OuterAssistantMessage): ChatMessage {
  const parts = Array.isArray(content) ? content : [];
  const thought = parts.flatMap((part) => (part.type === "thinking" ? [thoughtOf(part)] : [])).join("");
  const texts = parts.flatMap((part) => (part.type === "thinking" ? [] : [textPartOf(part)]));
  const text = Array.isArray(content) ? (texts.length > 0 ? texts : undefined) : content || (refusal ?? content);
  const thoughts = message.reasoning_content ?? reasoning ?? (thought === "" ? undefined : thought);
  return {
    ...message,
    ...(tool_calls && { tool_calls: tool_calls.map(functionCall) }),
    ...(text === undefined ? {} : { content: text }),
    ...(thoughts === undefined ? {} : { reasoning_content: thoughts }),
  };
}

function thoughtOf({ thinking }: z.infer<typeof thinkingPart>): string {
  return typeof thinking === "string" ? thinking : thinking.map((part) => part.text).join("");
}

function innerPart(part: z.infer<typeof outerPart>): z.infer<typeof textPart> | z.infer<typeof imagePart> {
  if (part.type === "text") return part;
  const { url, detail } = typeof part.image_url === "string" ? { url: part.image_url } : part.image_url;
  return innerImage(url, detail);
}

function textPartOf(part: z.infer<typeof textPart> | z.infer<typeof refusalPart>): z.infer<typeof textPart> {
  return part.type === "refusal" ? { type: "text", text: part.refusal } : part;
}

const toolOrder: ToolOrderErrors = {
  noCall: [
    "A message with the role 'tool' must follow the assistant's message that made the call, and name it in its 'tool_call_id'.",
    ".role",
  ],
  sameIds: ["Two tool calls of one message have the same 'id'. Give each call its own id.", ".tool_calls"],
  noResult: ["Each tool call needs a message with the role 'tool' right after it. These calls have none:", ".role"],
};

/** Returns the response format in the one form that machines get: any schema becomes a `json_schema`. */
function innerResponseFormat(format: NonNullable<ChatRequest["response_format"]>): ChatBody["response_format"] {
  if (format.type === "json_schema") assertSchemaSize(format.json_schema.schema, "response_format.json_schema.schema");
  if (format.type !== "json_object" || format.schema === undefined) return format;
  assertSchemaSize(format.schema, "response_format.schema");
  return { type: "json_schema", json_schema: { name: "answer", schema: format.schema } };
}

const unsupportedMessageFields: UnsupportedFields = {
  function_call: { why: "was replaced by 'tool_calls'; send those" },
  audio: { why: "names an earlier spoken answer, and answers are text here" },
};

/** The parts of a chat that its answer needs. */
export interface ChatCompletionForm extends CompletionForm {
  /** The names of its custom tools. */
  readonly custom: readonly string[];
}

export const reads: Reads = {
  chat: { read: (input, { promptSeed }) => readAsChat(readChatRequest(input), { foldsSystem: false, promptSeed }) },
};

/**
 * Reads a chat request and translates it to the job body. Where OpenAI allows two forms of a field, the job body has
 * one.
 */
export function readChatRequest(input: Record<string, unknown>): ReadChatRequest<ChatCompletionForm> {
  dropNulls(input);
  dropEmptyLists(input, ["tools", "functions"]);
  dropUnset(input);
  refuseFields(input, unsupportedChatFields);
  if ("tools" in input || "response_format" in input)
    dropNullsAt(input, ["tools.function", "tools.custom", "response_format.json_schema"]);
  if (Array.isArray(input["messages"])) input["messages"].forEach(prepareMessage);
  const { value, ignored } = readShape(chatRequest, input);
  const { stream, ...usage } = completionChoice(value);
  checkTogether(value);
  const tools = value.tools || value.tool_choice ? readTools(value) : noTools;
  const { body, sentNames } = bodyOf(value, tools);
  return {
    model: value.model,
    stream,
    body,
    ...lookThrough(value.messages, body),
    ignored: [...ignored, ...tools.ignored],
    form: { ...usage, sentNames, custom: tools.custom },
  };
}

/** Removes the empty fields of a message, and refuses fields of older clients. */
function prepareMessage(message: unknown, index: number): void {
  if (typeof message !== "object" || message === null) return;
  const fields = message as Record<string, unknown>;
  dropNulls(fields, "content");
  dropEmptyLists(fields, fields["role"] === "assistant" ? ["tool_calls", "content"] : ["tool_calls"]);
  // A tool that returned nothing.
  if (fields["role"] === "tool" && isEmptyList(fields["content"])) fields["content"] = "";
  refuseFields(fields, unsupportedMessageFields, `messages[${index}].`);
}

/**
 * Returns the job body, and the client's names of its fields. `readChatRequest` has already removed null fields, so
 * every remaining field has a value.
 */
function bodyOf(request: ChatRequest, { chosen }: ChatTools) {
  const { model: _m, stream: _s, stream_options: _o, usage: _u, max_completion_tokens: current, ...rest } = request;
  const { messages, stop, tools: _t, tool_choice: _c, response_format: format, ...others } = rest;
  const isPlain = !Object.keys(others).some((field) => runtimeFields.has(field));
  const { fields, sentNames } = isPlain ? { fields: {}, sentNames: {} } : innerChatFields(request);
  const body: ChatBody = {
    ...(isPlain ? others : withoutRuntimeFields(others)),
    messages: messages.map(innerMessage),
    ...chosen,
    ...(stop && stopStrings(stop)),
    ...(format && { response_format: innerResponseFormat(format) }),
    ...(typeof current === "number" && { max_tokens: current }),
    ...fields,
  };
  return { body, sentNames };
}

/** Checks rules that involve two fields, which the schema of a single field cannot express. */
function checkTogether(request: ChatRequest): void {
  const { max_tokens: old, max_completion_tokens: current } = request;
  if (typeof old === "number" && typeof current === "number" && old !== current) {
    const message = "'max_tokens' and 'max_completion_tokens' differ; send only 'max_completion_tokens'.";
    throw invalidValue("max_tokens", message);
  }
  if (typeof request.top_logprobs === "number" && request.logprobs !== true) {
    throw invalidValue("top_logprobs", "'top_logprobs' is only allowed when 'logprobs' is true.");
  }
}

/** Finds the images of the messages, and checks the order of calls and results where there are some. */
function lookThrough(given: ChatRequest["messages"], { messages }: ChatBody): RequestImages {
  const images = new FoundImages();
  let hasCalls = false;
  for (const [index, message] of given.entries()) {
    hasCalls ||= message.role === "tool" || (message.role === "assistant" && message.tool_calls !== undefined);
    if ((message.role !== "user" && message.role !== "tool") || typeof message.content === "string") continue;
    for (const [at, part] of message.content.entries()) {
      if (part.type !== "image_url") continue;
      const param = `messages[${index}].content[${at}]`;
      const image = part.image_url;
      if (typeof image === "string") images.add(image, param, `${param}.image_url`);
      else images.add(image.url, param, `${param}.image_url.url`);
    }
  }
  if (hasCalls) assertToolOrder(messages, toolOrder, (index) => `messages[${index}]`);
  return images.fields();
}
