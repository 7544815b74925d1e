import { z } from "zod";
import {
  responseFormat,
  chatBody,
  assistantMessage,
  imagePart,
  systemMessage,
  textPart,
  toolMessage,
  toolsMax,
  userMessage,
} from "#shared/protocol/job-bodies.ts";
import { modelId } from "#shared/protocol/model.ts";
import { costField, imageDetail, samplingFields, streamFields, verbosity } from "../../requests/request-fields.ts";
import type { UnsupportedFields } from "../../requests/request-fields.ts";
import { messagesMax } from "../../chats/read-chat.ts";
import { outerToolChoice } from "../../chats/request-tools.ts";
import { chatCall, chatTool } from "../../chats/custom-tools.ts";
import { runtimeChatFields, runtimeSampling } from "../../chats/runtime-fields.ts";

const developerMessage = systemMessage.extend({ role: z.literal("developer") });

/** A thought as a part, as Anthropic's and Mistral's clients write it. */
export const thinkingPart = z.object({
  type: z.literal("thinking"),
  thinking: z.union([z.string(), z.array(textPart)]).describe("A thought of an earlier answer, as a text or as parts."),
});
export const refusalPart = z.object({ type: z.literal("refusal"), refusal: z.string() });

/** An assistant message as clients send it back: with its refusal, and with its reasoning under either field name. */
const outerAssistantMessage = assistantMessage.extend({
  content: z
    .union([z.string(), z.array(z.discriminatedUnion("type", [textPart, refusalPart, thinkingPart])).min(1)])
    .nullish(),
  tool_calls: z.array(chatCall).min(1).optional(),
  refusal: z.string().nullish(),
  reasoning: z.string().nullish(),
});
export type OuterAssistantMessage = z.infer<typeof outerAssistantMessage>;

const outerImagePart = imagePart.extend({
  image_url: z.union([
    imagePart.shape.image_url.extend({
      url: z.string(),
      detail: imageDetail,
    }),
    z.string(),
  ]),
});
export const outerPart = z.discriminatedUnion("type", [textPart, outerImagePart]);

const outerUserMessage = userMessage.extend({ content: z.union([z.string(), z.array(outerPart).min(1)]) });

/** The result of a tool. Tools that look at pages, screens and files return images. */
const outerToolMessage = toolMessage.extend({ content: outerUserMessage.shape.content });

export const outerMessage = z.discriminatedUnion("role", [
  systemMessage,
  developerMessage,
  outerUserMessage,
  outerAssistantMessage,
  outerToolMessage,
]);

const [text, jsonObject, jsonSchema] = responseFormat.options;

/** The response format as clients write it. Some clients send a schema together with `json_object`. */
export const outerResponseFormat = z.discriminatedUnion("type", [
  text,
  jsonObject.extend({
    schema: jsonSchema.shape.json_schema.shape.schema.describe(
      "A schema that the answer is to fit, as in `json_schema`.",
    ),
  }),
  jsonSchema,
]);

const inner = chatBody.shape;

/** A chat completion request as OpenAI's clients write it. A null field counts as missing. */
export const chatRequest = z.object({
  model: modelId,
  messages: z.array(outerMessage).min(1).max(messagesMax),
  ...streamFields,
  ...costField,
  tools: z.array(chatTool).max(toolsMax).nullish(),
  tool_choice: outerToolChoice.nullish(),
  parallel_tool_calls: inner.parallel_tool_calls.nullable(),
  max_tokens: inner.max_tokens.nullable(),
  max_completion_tokens: inner.max_tokens.nullable(),
  ...samplingFields,
  n: inner.n.nullable(),
  logprobs: inner.logprobs.nullable().describe("True if the probability of each token of the answer is to be told."),
  top_logprobs: inner.top_logprobs.nullable(),
  logit_bias: inner.logit_bias.nullable(),
  response_format: outerResponseFormat.nullish(),
  reasoning_effort: inner.reasoning_effort.nullable(),
  ...runtimeSampling,
  ...runtimeChatFields,
});
export type ChatRequest = z.infer<typeof chatRequest>;

export const unsupportedChatFields: UnsupportedFields = {
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
