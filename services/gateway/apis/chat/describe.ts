import { z } from "zod";
import { finishReasons } from "#shared/protocol/answer-events.ts";
import { toolCall } from "#shared/protocol/job-bodies.ts";
import { chatRequest, outerMessage, outerResponseFormat, unsupportedChatFields } from "./chat-schema.ts";
import { chatCall, chatTool } from "../../chats/custom-tools.ts";
import { outerToolChoice } from "../../chats/request-tools.ts";
import { count, maybeText, nothing, text, textOrNull } from "../answer-parts.ts";
import { chunkOf, completionOf, endOfChunks, tokenLogprob, tokenUsage } from "../openai-answers.ts";
import { type ApiDescription, post } from "../description.ts";
import { conversationExamples, example, sample, user } from "../example-requests.ts";

const refusal = nothing("a refusal is text like any other here");
const logprobs = z.object({ content: z.array(tokenLogprob), refusal }).nullable();
const thoughts = { reasoning_content: maybeText, reasoning: maybeText };
const message = z.object({
  role: z.literal("assistant"),
  content: textOrNull,
  refusal,
  ...thoughts,
  tool_calls: z.array(chatCall).optional(),
});
const choice = z.object({ index: count, message, logprobs, finish_reason: z.enum(finishReasons) });
const chatCompletion = completionOf("chat.completion", choice);

const callPiece = z.object({
  index: count,
  id: maybeText,
  type: z.enum(["function", "custom"]).optional(),
  function: z.object({ name: maybeText, arguments: text }).optional(),
  custom: z.object({ name: maybeText, input: text }).optional(),
});
const delta = z.object({
  role: z.literal("assistant").optional(),
  content: maybeText,
  refusal: refusal.optional(),
  ...thoughts,
  tool_calls: z.array(callPiece).optional(),
});
const finish_reason = choice.shape.finish_reason.nullable().describe(endOfChunks);
const piece = choice.omit({ message: true }).extend({ delta, finish_reason });
const chatCompletionChunk = chunkOf("chat.completion.chunk", piece);

const ask = (content: unknown, ...turns: readonly object[]) => ({ messages: [user(content), ...turns] });
const examples = conversationExamples(ask, {
  tools: { tools: [{ type: "function", function: sample.weather }] },
  turns: [
    { role: "assistant", content: null, tool_calls: [{ id: "call_1", type: "function", function: sample.call }] },
    { role: "tool", tool_call_id: "call_1", content: sample.rain },
  ],
  shown: [
    { type: "text", text: sample.whatIsThis },
    { type: "image_url", image_url: { url: sample.imageUrl } },
  ],
  json: { response_format: { type: "json_schema", json_schema: sample.city } },
});
const streamed = { ...examples.stream.value, stream_options: { include_usage: true } };

const [systemMessage, developerMessage, userMessage, assistantMessage, toolMessage] = outerMessage.options;

export const describeChat: ApiDescription = {
  tag: "Chat",
  refusedAs: "chat",
  schemas: [
    { chatRequest, chatCompletion, chatCompletionChunk, tokenLogprob, tokenUsage, tool: chatTool, toolCall },
    { chatMessage: outerMessage, systemMessage, developerMessage, userMessage, assistantMessage, toolMessage },
    { toolChoice: outerToolChoice, responseFormat: outerResponseFormat },
  ],
  operations: [
    post("createChatCompletion", "chat", [chatRequest, chatCompletion, chatCompletionChunk], {
      refuses: unsupportedChatFields,
      examples: { ...examples, stream: example("The same, piece by piece and with its usage", streamed) },
    }),
  ],
};
