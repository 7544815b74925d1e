import { z } from "zod";
import { modelId } from "#shared/protocol/model.ts";
import { chatBody, stopsMax, stopText, textPart, toolDefinition, toolsMax } from "#shared/protocol/job-bodies.ts";
import { messagesMax } from "../../chats/read-chat.ts";
import { isEmptyList, onlyInChats, type UnsupportedFields } from "../../requests/request-fields.ts";
import { outerToolName } from "../../chats/request-tools.ts";

const ofModel = "As the answer had it.";

export const imageBlock = z.object({
  type: z.literal("image"),
  source: z
    .discriminatedUnion("type", [
      z.object({
        type: z.literal("base64"),
        media_type: z
          .string()
          .regex(/^image\/[a-z0-9.+-]{1,32}$/, "must be a media type such as image/png")
          .describe("The kind of image, such as `image/png`."),
        data: z.string().describe("The image in base64."),
      }),
      z.object({ type: z.literal("url"), url: z.string() }),
    ])
    .describe("The image itself in base64, or its address."),
});

/** A document that is text. Models here read no PDF. */
export const documentBlock = z.object({
  type: z.literal("document"),
  source: z
    .discriminatedUnion("type", [
      z.object({
        type: z.literal("text"),
        media_type: z.literal("text/plain").optional().describe("A text needs none."),
        data: z.string().describe("The text of the document."),
      }),
      z.object({
        type: z.literal("content"),
        content: z.union([z.string(), z.array(z.discriminatedUnion("type", [textPart, imageBlock]))]),
      }),
    ])
    .describe("The document's text. A PDF is refused: models here read text and images."),
  title: z.string().nullish().describe("The title of the document."),
  context: z.string().nullish().describe("Facts of the document that the model should know."),
});

export const searchResultBlock = z.object({
  type: z.literal("search_result"),
  source: z.string().describe("The place at which the result was found."),
  title: z.string().describe("The title of the result."),
  content: z.array(textPart),
});

/** The name of a tool that a search for tools found. */
const toolReference = z.object({
  type: z.literal("tool_reference"),
  tool_name: z.string().describe("The name of the found tool."),
});

/** The result of a tool that the model called. */
export const toolResultBlock = z.object({
  type: z.literal("tool_result"),
  tool_use_id: z.string().min(1).describe("The id of the `tool_use` that this is the result of."),
  content: z
    .union([
      z.string(),
      z.array(z.discriminatedUnion("type", [textPart, imageBlock, documentBlock, searchResultBlock, toolReference])),
    ])
    .nullish(),
  is_error: z.boolean().nullish().describe("True if the tool failed. The model is told so."),
});

export const userBlock = z.discriminatedUnion("type", [
  textPart,
  imageBlock,
  documentBlock,
  searchResultBlock,
  toolResultBlock,
]);

export const thinkingBlock = z.object({
  type: z.literal("thinking"),
  thinking: z.string().describe("The thoughts of the model."),
  signature: z.string().nullish().describe(ofModel),
});

export const toolUseBlock = z.object({
  type: z.literal("tool_use"),
  id: z.string().min(1).describe("The id of this call; its `tool_result` names it."),
  name: z.string().min(1),
  input: z.record(z.string(), z.unknown()).describe("The arguments of the call."),
  caller: z.looseObject({ type: z.string() }).nullish().describe(ofModel),
});

/** Blocks of an answer that Anthropic's own servers gave, which mean nothing to other models. */
const foreignBlock = z.looseObject({
  type: z.enum([
    "redacted_thinking",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "advisor_tool_result",
    "fallback",
    "container_upload",
  ]),
});

export const assistantBlock = z.discriminatedUnion("type", [textPart, thinkingBlock, toolUseBlock, foreignBlock]);

const says = "The text, or blocks of it.";

/** One message of a conversation as clients of the Messages API write it. */
export const message = z.discriminatedUnion("role", [
  z.object({ role: z.literal("user"), content: z.union([z.string(), z.array(userBlock)]).describe(says) }),
  z.object({ role: z.literal("assistant"), content: z.union([z.string(), z.array(assistantBlock)]).describe(says) }),
  z.object({ role: z.literal("system"), content: z.union([z.string(), z.array(textPart)]).describe(says) }),
]);

const { description, parameters, strict } = toolDefinition.shape.function.shape;

/** A tool that the client runs, with the schema of its input. */
export const clientTool = z.object({
  type: z.literal("custom").nullish(),
  name: outerToolName,
  description: description.nullable(),
  input_schema: parameters.nullable().describe("Its arguments, as a JSON Schema of an object."),
  strict,
  defer_loading: z.boolean().nullish(),
});

/** A tool that only Anthropic's servers or models know, such as a search of the web. */
export const foreignTool = z.looseObject({
  type: z.string().refine((type) => type !== "custom", "must be 'custom', or the type of a tool of Anthropic's"),
});

export const messageTool = z.union([clientTool, foreignTool]);

const parallel = {
  disable_parallel_tool_use: z.boolean().nullish().describe("True if the model may call only one tool at once."),
};

export const messageToolChoice = z.discriminatedUnion("type", [
  z.object({ type: z.literal("auto"), ...parallel }),
  z.object({ type: z.literal("any"), ...parallel }),
  z.object({ type: z.literal("tool"), name: z.string().min(1), ...parallel }),
  z.object({ type: z.literal("none") }),
]);

/** The form of the text as clients of the Messages API write it. */
export const outputFormat = z.object({
  type: z.literal("json_schema"),
  schema: z.record(z.string(), z.unknown()),
});

const inner = chatBody.shape;
const wish = "A model or runtime without this choice answers all the same, and `x-trunkline-ignored` names the field.";

/** A request of the Messages API as Anthropic's clients write it. A null field counts as missing. */
export const messageRequest = z.object({
  model: modelId,
  max_tokens: inner.max_tokens.unwrap().describe("The most tokens of the answer, thoughts included."),
  messages: z.array(message).min(1).max(messagesMax),
  system: z.union([z.string(), z.array(textPart)]).nullish(),
  stream: z.boolean().nullish(),
  stop_sequences: z.array(stopText).max(stopsMax).nullish().describe("Texts before which the answer ends."),
  temperature: inner.temperature.nullable(),
  top_p: inner.top_p.nullable(),
  top_k: inner.top_k.nullable(),
  tools: z.array(messageTool).max(toolsMax).nullish(),
  tool_choice: messageToolChoice.nullish(),
  thinking: z
    .discriminatedUnion("type", [
      z.object({ type: z.literal("enabled") }),
      z.object({ type: z.literal("adaptive") }),
      z.object({ type: z.literal("between_tools") }),
      z.object({ type: z.literal("disabled") }),
    ])
    .nullish()
    .describe(`The switch for thinking before the answer; without \`disabled\` it is left to the model. ${wish}`),
  output_config: z
    .object({
      effort: inner.reasoning_effort.nullable().describe(`The effort of thinking before the answer. ${wish}`),
      format: outputFormat.nullish().describe("The form of the text. Any text unless given."),
    })
    .nullish()
    .describe("The effort of thinking, and the form of the text."),
  output_format: outputFormat.nullish().describe("The older name of `output_config.format`."),
});

/** The same for a count of its tokens, which has no answer. */
export const countedMessage = messageRequest.extend({ max_tokens: inner.max_tokens.nullable() });

export type MessageRequest = z.infer<typeof countedMessage>;
export type OuterMessage = z.infer<typeof message>;
export type UserBlock = z.infer<typeof userBlock>;
export type AssistantBlock = z.infer<typeof assistantBlock>;
export type ToolResultBlock = z.infer<typeof toolResultBlock>;
export type ImageBlock = z.infer<typeof imageBlock>;
export type DocumentBlock = z.infer<typeof documentBlock>;
export type ClientTool = z.infer<typeof clientTool>;
export type ForeignTool = z.infer<typeof foreignTool>;

const onlyHere = (field: string) => ({ why: `is a field of chats; send '${field}'` });

export const unsupportedMessagesFields: UnsupportedFields = {
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
