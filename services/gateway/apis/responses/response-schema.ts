import { z } from "zod";
import { modelId } from "#shared/protocol/model.ts";
import { chatBody, responseFormat, toolsMax, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { messagesMax } from "../../chats/read-chat.ts";
import { formOfText, grammarFields } from "../../chats/custom-tools.ts";
import { imageDetail, onlyInChats, type UnsupportedFields } from "../../requests/request-fields.ts";
import { outerTool } from "../../chats/request-tools.ts";

/** Fields of items that came in an earlier answer and are sent back. Models do not get them. */
const itsOwn = "As the answer had it. It means nothing to a model.";
const asAnswered = { id: z.string().nullish().describe(itsOwn), status: z.string().nullish().describe(itsOwn) };

const inputText = z.object({ type: z.literal("input_text"), text: z.string() });
const inputImage = z.object({
  type: z.literal("input_image"),
  image_url: z.string(),
  detail: imageDetail,
});
const outputText = z.object({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(z.unknown()).nullish().describe(itsOwn),
  logprobs: z.array(z.unknown()).nullish().describe(itsOwn),
});
const refusal = z.object({ type: z.literal("refusal"), refusal: z.string() });
export const messagePart = z.discriminatedUnion("type", [inputText, inputImage, outputText, refusal]);

/** A message. Most clients leave out its `type`. */
export const messageItem = z.object({
  type: z.literal("message").optional().describe("The kind of the item; may be left out where there is a `role`."),
  role: z.enum(["user", "assistant", "system", "developer"]),
  content: z.union([z.string(), z.array(messagePart)]),
  ...asAnswered,
});

/** Earlier reasoning of the model: the full text, or the summary where the client got only that. */
export const reasoningItem = z.object({
  type: z.literal("reasoning"),
  summary: z.array(z.object({ type: z.literal("summary_text"), text: z.string() })).nullish(),
  content: z.array(z.object({ type: z.literal("reasoning_text"), text: z.string() })).nullish(),
  ...asAnswered,
});

const callFields = {
  call_id: z.string().min(1),
  namespace: z.string().min(1).nullish(),
  name: z.string().min(1),
  ...asAnswered,
};
export const callItem = z.object({ type: z.literal("function_call"), ...callFields, arguments: z.string() });
export const customCallItem = z.object({
  type: z.literal("custom_tool_call"),
  ...callFields,
  input: z.string().describe("The text that the model gave the tool."),
});

export const callOutputItem = z.object({
  type: z.enum(["function_call_output", "custom_tool_call_output"]),
  call_id: z.string().min(1),
  output: z.union([z.string(), z.array(z.discriminatedUnion("type", [inputText, inputImage]))]),
  ...asAnswered,
});

export const inputItem = z.discriminatedUnion("type", [
  messageItem,
  reasoningItem,
  callItem,
  customCallItem,
  callOutputItem,
]);

export type MessageItem = z.infer<typeof messageItem>;
export type ReasoningItem = z.infer<typeof reasoningItem>;
export type CallItem = z.infer<typeof callItem>;
export type CustomCallItem = z.infer<typeof customCallItem>;
export type CallOutputItem = z.infer<typeof callOutputItem>;
export type MessagePart = z.infer<typeof messagePart>;
export type InputItem = z.infer<typeof inputItem>;

/** Returns the text of a part. An image has none. */
export function textOf(part: MessagePart): string {
  if (part.type === "refusal") return part.refusal;
  return part.type === "input_image" ? "" : part.text;
}

const { name, description, parameters, strict } = outerTool.shape.function.shape;

export const functionTool = z.object({
  type: z.literal("function"),
  name,
  description: description.nullable(),
  parameters: parameters.nullable(),
  strict,
});
export type FunctionTool = z.infer<typeof functionTool>;

/** A tool that takes one text, such as a patch, as clients of the Responses API write it. */
export const customTool = z.object({
  type: z.literal("custom"),
  name,
  description: description.nullable(),
  format: z
    .discriminatedUnion("type", [
      z.object({ type: z.literal("text") }),
      z.object({ type: z.literal("grammar"), ...grammarFields }),
    ])
    .nullish()
    .describe(formOfText),
});
export type CustomTool = z.infer<typeof customTool>;

/** The name of a client's function. Some functions are in a namespace. */
export interface FunctionName {
  readonly name: string;
  readonly namespace?: string | null | undefined;
}

/** A function or custom tool that the model may call. */
export interface CalledTool extends FunctionName {
  readonly is: "function" | "custom";
}

/** Joins the namespace and the name. Models do not support namespaces. */
export function innerName(called: FunctionName): string {
  return called.namespace ? `${called.namespace}__${called.name}` : called.name;
}

export const namespaceTool = z.object({
  type: z.literal("namespace"),
  name: name.describe("The common name. The model is told both names in one, with `__` between."),
  description: description.nullable(),
  tools: z
    .array(z.discriminatedUnion("type", [functionTool, customTool]))
    .min(1)
    .max(toolsMax),
});

/** A web search tool, which some clients offer by habit to every server. It is ignored, and the client is told so. */
const webSearchTool = z.looseObject({
  type: z.enum(["web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"]),
});

export const responseTool = z.discriminatedUnion("type", [functionTool, customTool, namespaceTool, webSearchTool]);
export type ResponseTool = z.infer<typeof responseTool>;
/** A tool that the client runs itself. */
export type OwnTool = Exclude<ResponseTool, z.infer<typeof webSearchTool>>;

export function isOwnTool(tool: ResponseTool): tool is OwnTool {
  return tool.type === "function" || tool.type === "custom" || tool.type === "namespace";
}

const namedFunction = z.object({
  type: z.enum(["function", "custom"]),
  name: z.string().min(1).describe("The name of one of `tools`; that of its namespace is left out."),
});

export const responseToolChoice = z.union([
  z.enum(["auto", "none", "required"]),
  namedFunction,
  z.object({
    type: z.literal("allowed_tools"),
    mode: z.enum(["auto", "required"]),
    tools: z.array(namedFunction).min(1).max(toolsMax),
  }),
]);
export type ResponseToolChoice = z.infer<typeof responseToolChoice>;

const [text, jsonObject, jsonSchema] = responseFormat.options;

/** The text format as clients of the Responses API write it. The schema's fields stand beside `type`. */
export const outerTextFormat = z.discriminatedUnion("type", [
  text,
  jsonObject,
  jsonSchema.shape.json_schema.extend({ type: z.literal("json_schema") }),
]);
export type TextFormat = z.infer<typeof outerTextFormat>;

/** Converts the text format to the `response_format` that machines get. */
export function innerTextFormat(format: TextFormat | null | undefined): Pick<ChatBody, "response_format"> {
  if (!format) return {};
  if (format.type !== "json_schema") return { response_format: format };
  const { type, ...schema } = format;
  return { response_format: { type, json_schema: schema } };
}

const inner = chatBody.shape;

export const metadataPairsMax = 16;
/** Items that one request puts into a conversation: OpenAI's bound. */
export const conversationItemsMax = 20;
const storedId = z.string().min(1).max(100);

/** A request of the Responses API as OpenAI's clients write it. A null field counts as missing. */
export const responseRequest = z.object({
  model: modelId,
  input: z.union([z.string(), z.array(inputItem).min(1).max(messagesMax)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({}).nullish().describe("Only with `stream`. Nothing in it means anything here."),
  tools: z.array(responseTool).max(toolsMax).nullish(),
  tool_choice: responseToolChoice.nullish(),
  parallel_tool_calls: inner.parallel_tool_calls.nullable(),
  max_output_tokens: inner.max_tokens.nullable(),
  temperature: inner.temperature.nullable(),
  top_p: inner.top_p.nullable(),
  top_logprobs: inner.top_logprobs.nullable(),
  include: z.array(z.string()).nullish(),
  text: z.object({ format: outerTextFormat.nullish() }).nullish().describe("The form of the text."),
  reasoning: z
    .object({ effort: inner.reasoning_effort.nullable(), summary: z.enum(["auto", "concise", "detailed"]).nullish() })
    .nullish(),
  metadata: z
    .record(z.string().max(64), z.string().max(512))
    .refine((metadata) => Object.keys(metadata).length <= metadataPairsMax, {
      error: `it must have at most ${metadataPairsMax} fields (metadataPairsMax)`,
    })
    .nullish(),
  store: z.boolean().nullish(),
  previous_response_id: z.string().nullish(),
  conversation: z.union([storedId, z.object({ id: storedId })]).nullish(),
  truncation: z.enum(["auto", "disabled"]).nullish(),
});
export type ResponseRequest = z.infer<typeof responseRequest>;

/** Refused of keys whose responses are not stored. */
export const fieldsOfStored: UnsupportedFields = {
  conversation: {
    why: "names a conversation, and none is stored for this key; send the whole of it in 'input', or ask the operator to store its responses",
  },
  previous_response_id: {
    why: "names an earlier response, and none is stored for this key, not even with 'store: true'; send the whole conversation in 'input', or ask the operator to store its responses",
  },
};

export const unsupportedResponseFields: UnsupportedFields = {
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

/** A request for a conversation. Its items are the turns before its first response. */
export const conversationRequest = z.object({
  items: z.array(inputItem).max(conversationItemsMax).nullish(),
  metadata: responseRequest.shape.metadata,
});

/** A request to put items at the end of a conversation. */
export const conversationItemsRequest = z.object({ items: z.array(inputItem).min(1).max(conversationItemsMax) });
