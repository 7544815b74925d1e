import { z } from "zod";
import * as requests from "./message-schema.ts";
import { count, event, nothing, text, textOrNull, typed } from "../answer-parts.ts";
import { answeringModel, causes } from "../openai-answers.ts";
import { type ApiDescription, post } from "../description.ts";
import { conversationExamples, example, sample, user } from "../example-requests.ts";

const details = z.object({ thinking_tokens: count }).nullable();
const messageUsage = z.object({
  input_tokens: count,
  cache_creation: nothing("nothing is charged for keeping tokens"),
  cache_creation_input_tokens: z.literal(0),
  cache_read_input_tokens: count,
  output_tokens: count,
  output_tokens_details: details,
  inference_geo: nothing("the machines are the operator's own"),
  server_tool_use: nothing("the client runs the tools"),
  service_tier: nothing("there is one tier"),
});

const called = { id: text, name: text, caller: typed("direct", {}), input: z.record(text, z.unknown()) };
const contentBlock = z.discriminatedUnion("type", [
  typed("text", { text, citations: nothing("models here cite nothing") }),
  typed("thinking", { thinking: text, signature: text }),
  typed("tool_use", called),
]);

const ending = {
  container: nothing("no code runs in one"),
  stop_details: nothing("nothing tells why a model refuses"),
  stop_reason: z.enum(["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]).nullable(),
  stop_sequence: textOrNull,
};

/** A message: complete, or its beginning in a stream. */
const message = typed("message", {
  id: text,
  role: z.literal("assistant"),
  model: answeringModel,
  content: z.array(contentBlock),
  ...ending,
  usage: messageUsage,
});

/** The error body of the Messages API, as an answer and inside a stream. */
const noThread = z.object({
  error_code: z.literal("thread_unsupported_request"),
  unsupported: z.array(z.literal("thread")),
});
const fault = z.object({ type: text, message: text, ...causes, details: noThread.optional() });
export const messageError = typed("error", { error: fault, request_id: text });

const delta = z.discriminatedUnion("type", [
  typed("text_delta", { text }),
  typed("thinking_delta", { thinking: text }),
  typed("signature_delta", { signature: text }),
  typed("input_json_delta", { partial_json: text }),
]);
const index = count.describe("The number of the block in `content`, from 0.");
const messageEvent = z.discriminatedUnion("type", [
  event("message_start", { message: message.describe("The message without its content.") }),
  event("content_block_start", { index, content_block: contentBlock.describe("The block without its content.") }),
  event("content_block_delta", { index, delta: delta.describe("The next piece.") }),
  event("content_block_stop", { index }),
  event("message_delta", { delta: z.object(ending).describe("The end of the answer."), usage: messageUsage }),
  event("message_stop", {}),
  event("ping", {}),
  messageError,
]);
const tokenCount = z.object({ input_tokens: count });

const max_tokens = 1_024;
const { name, description, parameters: input_schema } = sample.weather;
const ask = (content: unknown, ...turns: readonly object[]) => ({ max_tokens, messages: [user(content), ...turns] });
const examples = conversationExamples(ask, {
  tools: { tools: [{ name, description, input_schema }] },
  turns: [
    { role: "assistant", content: [{ type: "tool_use", id: "call_1", name, input: { city: "Oslo" } }] },
    user([{ type: "tool_result", tool_use_id: "call_1", content: sample.rain }]),
  ],
  shown: [
    { type: "text", text: sample.whatIsThis },
    { type: "image", source: { type: "base64", media_type: "image/png", data: sample.image } },
  ],
  json: { output_config: { format: { type: "json_schema", schema: sample.city.schema } } },
});
const pirate = { max_tokens, system: "Answer like a pirate.", messages: [user(sample.why)] };

const { messageRequest, countedMessage, imageBlock, documentBlock, searchResultBlock, toolResultBlock } = requests;
const { thinkingBlock, toolUseBlock, messageTool, clientTool, messageToolChoice, outputFormat } = requests;

export const describeMessages: ApiDescription = {
  tag: "Messages",
  errors: [messageError],
  stream: "events",
  refusedAs: "count",
  schemas: [
    { messageRequest, countedMessage, messageTurn: requests.message, imageBlock, documentBlock, searchResultBlock },
    { toolResultBlock, thinkingBlock, toolUseBlock, messageTool, clientTool, messageToolChoice, outputFormat },
    { contentBlock, message, messageError, messageEvent, tokenCount },
  ],
  operations: [
    post("createMessage", "message", [messageRequest, message, messageEvent], {
      refuses: requests.unsupportedMessagesFields,
      refusedAs: "chat",
      examples: { ...examples, question: example("A question, answered whole", pirate) },
    }),
    post("countMessageTokens", "count", [countedMessage, tokenCount], {
      refuses: requests.unsupportedMessagesFields,
      headers: ["x-trunkline-estimate"],
      examples: { question: example("A question", { messages: [user(sample.why)] }) },
    }),
  ],
};
