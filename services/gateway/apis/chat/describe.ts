import { z } from "zod";
import { finishReasons } from "#shared/protocol/answer-events.ts";
import { toolCall } from "#shared/protocol/job-bodies.ts";
import { chatRequest, outerMessage, outerResponseFormat, unsupportedChatFields } from "./chat-schema.ts";
import { chatCall, chatTool } from "../../chats/custom-tools.ts";
import { outerToolChoice } from "../../chats/request-tools.ts";
import { count, nothing, text, textOrNull } from "../answer-parts.ts";
import { chunkOf, completionOf, endOfChunks, tokenLogprob, tokenUsage } from "../openai-answers.ts";
import { type ApiDescription, post } from "../description.ts";
import { conversationExamples, example, sample, user } from "../example-requests.ts";

const refusal = nothing("a refusal is text like any other here");
const logprobs = z
  .object({ content: z.array(tokenLogprob).describe("One entry for each token of the text."), refusal })
  .nullable();
const thoughts = { reasoning_content: z.string().optional(), reasoning: z.string().optional() };
const message = z.object({
  role: z.literal("assistant"),
  content: textOrNull("The text; null where the model said nothing but calls tools."),
  refusal,
  ...thoughts,
  tool_calls: z.array(chatCall).optional(),
});
const choice = z.object({ index: count, message, logprobs, finish_reason: z.enum(finishReasons) });
const chatCompletion = completionOf("chat.completion", choice);

const once = "Once, at the call's beginning.";
const name = text(once).optional();
const pieces = text("The next piece of the arguments: all of them together are one JSON text.");
const custom = "Of a custom tool. Its `input` is empty at its beginning, and whole in one later chunk.";
const callPiece = z.object({
  index: count.describe("The number of the call in the answer, from 0."),
  id: name,
  type: z.enum(["function", "custom"]).optional().describe(once),
  function: z.object({ name, arguments: pieces }).optional().describe("Of a function."),
  custom: z.object({ name, input: z.string() }).optional().describe(custom),
});
const delta = z.object({
  role: z.literal("assistant").optional().describe("The speaker, in the first chunk of a choice."),
  content: text("The next piece of the text.").optional(),
  refusal: refusal.optional(),
  ...thoughts,
  tool_calls: z.array(callPiece).optional().describe("The next piece of a call."),
});
const piece = choice.omit({ message: true }).extend({
  delta: delta.describe("The next piece; empty in the chunk that has the reason for the end."),
  finish_reason: choice.shape.finish_reason.nullable().describe(endOfChunks),
});
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
