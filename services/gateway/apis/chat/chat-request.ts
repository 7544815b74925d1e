import type { z } from "zod";
import type { ChatBody, ChatMessage, imagePart, textPart } from "#shared/protocol/job-bodies.ts";
import { readShape } from "../../http/read-shape.ts";
import {
  FoundImages,
  type RequestImages,
  dropEmptyLists,
  dropNulls,
  dropNullsAt,
  dropUnset,
  innerImage,
  isEmptyList,
  objectsIn,
  assertSchemaSize,
  invalidValue,
  stopStrings,
  streamChoice,
  refuseFields,
  type UnsupportedFields,
} from "../../requests/request-fields.ts";
import type { Reads } from "../../requests/read-request.ts";
import { readAsChat, type ReadChatRequest } from "../../chats/read-chat.ts";
import { chosenTools, choiceOf, assertToolOrder, type ToolOrderErrors } from "../../chats/request-tools.ts";
import { functionCall, functionOfChat, grammarsOfChat } from "../../chats/custom-tools.ts";
import {
  innerChatFields,
  innerSampling,
  withoutRuntimeFields,
  type SentNames,
  type CompletionForm,
} from "../../chats/runtime-fields.ts";
import {
  type ChatRequest,
  chatRequest,
  type OuterAssistantMessage,
  type outerMessage,
  type outerPart,
  type outerResponseFormat,
  type refusalPart,
  type thinkingPart,
  unsupportedChatFields,
} from "./chat-schema.ts";

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
function innerResponseFormat(
  format: z.infer<typeof outerResponseFormat> | null | undefined,
): Pick<ChatBody, "response_format"> {
  if (format === null || format === undefined) return {};
  if (format.type !== "json_object" || format.schema === undefined) return { response_format: format };
  return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: format.schema } } };
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
  dropEmptyFields(input);
  refuseFields(input, unsupportedChatFields);
  const { messages } = input;
  for (const [place, message] of Array.isArray(messages) ? messages.entries() : []) {
    if (typeof message === "object" && message !== null) {
      refuseFields(message, unsupportedMessageFields, `messages[${place}].`);
    }
  }
  const { value, ignored } = readShape(chatRequest, input);
  const { stream, includeUsage } = streamChoice(value);
  checkTogether(value);
  checkSchemas(value);
  const { body, sentNames } = bodyOf(value);
  assertToolOrder(body.messages, toolOrder, (place) => `messages[${place}]`);
  return {
    model: value.model,
    stream,
    body,
    ...imagesIn(value),
    ignored: [...ignored, ...grammarsOfChat(value.tools ?? [])],
    form: {
      includeUsage,
      sentNames,
      custom: (value.tools ?? []).flatMap((tool) => (tool.type === "custom" ? [tool.custom.name] : [])),
    },
  };
}

function dropEmptyFields(input: Record<string, unknown>): void {
  dropNulls(input);
  dropEmptyLists(input, ["tools", "functions"]);
  dropUnset(input);
  for (const message of objectsIn(input["messages"])) {
    dropNulls(message, "content");
    dropEmptyLists(message, message["role"] === "assistant" ? ["tool_calls", "content"] : ["tool_calls"]);
    // A tool that returned nothing.
    if (message["role"] === "tool" && isEmptyList(message["content"])) message["content"] = "";
  }
  dropNullsAt(input, ["tools.function", "tools.custom", "response_format.json_schema"]);
}

/**
 * Returns the job body, and the client's names of its fields. `readChatRequest` has already removed null fields, so
 * every remaining field has a value.
 */
function bodyOf(request: ChatRequest): { readonly body: ChatBody; readonly sentNames: SentNames } {
  const { model: _m, stream: _s, stream_options: _o, max_completion_tokens: current, ...rest } = request;
  const { messages, stop, tools, tool_choice: choice, response_format: format, ...others } = rest;
  const response = innerResponseFormat(format);
  const sampling = innerSampling(request);
  const own = innerChatFields(request);
  const body = {
    ...withoutRuntimeFields(others),
    messages: messages.map(innerMessage),
    ...chosenTools((tools ?? []).map(functionOfChat), choice ? choiceOf(choice) : undefined),
    ...stopStrings(stop),
    ...response,
    ...(typeof current === "number" && { max_tokens: current }),
    ...sampling.fields,
    ...own.fields,
  };
  return { body, sentNames: { ...sampling.sentNames, ...own.sentNames } };
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

function checkSchemas({ tools, response_format: format }: ChatRequest): void {
  for (const [place, tool] of (tools ?? []).entries()) {
    if (tool.type === "function") assertSchemaSize(tool.function.parameters, `tools[${place}].function.parameters`);
  }
  if (format?.type === "json_schema") {
    assertSchemaSize(format.json_schema.schema, "response_format.json_schema.schema");
  }
  if (format?.type === "json_object") assertSchemaSize(format.schema, "response_format.schema");
}

function imagesIn(request: ChatRequest): RequestImages {
  const images = new FoundImages();
  for (const [place, message] of request.messages.entries()) {
    if ((message.role !== "user" && message.role !== "tool") || typeof message.content === "string") continue;
    for (const [at, part] of message.content.entries()) {
      if (part.type !== "image_url") continue;
      const param = `messages[${place}].content[${at}]`;
      const image = part.image_url;
      if (typeof image === "string") images.add(image, param, `${param}.image_url`);
      else images.add(image.url, param, `${param}.image_url.url`);
    }
  }
  return images.fields();
}
