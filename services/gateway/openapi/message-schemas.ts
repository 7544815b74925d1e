import { z } from "zod";
import { count, event } from "./schema-parts.ts";

// The answers of the Messages API. The public document has each export by its name.

const none = (why: string) => z.null().describe(`Always null: ${why}.`);

const place = count.describe("The number of the block in `content`, from 0.");
const signature = z.string().describe("Sent back with the thoughts. It proves nothing here.");

const messageUsage = z.object({
  input_tokens: count.describe("The tokens of the prompt that the runtime had to read. 0 until the answer's end."),
  cache_creation: none("nothing is charged for keeping tokens"),
  cache_creation_input_tokens: z.literal(0).describe("Always 0: nothing is charged for keeping them."),
  cache_read_input_tokens: count.describe("The prompt's tokens that the runtime still had, as far as it tells."),
  output_tokens: count,
  output_tokens_details: z
    .object({ thinking_tokens: count.describe("The tokens that were thoughts.") })
    .nullable()
    .describe("The same, looked at closely; null where the runtime does not tell."),
  inference_geo: none("the machines are the operator's own"),
  server_tool_use: none("the client runs the tools"),
  service_tier: none("there is one tier"),
});

const text = z.object({ type: z.literal("text"), text: z.string(), citations: none("models here cite nothing") });
const thinking = z.object({
  type: z.literal("thinking"),
  thinking: z.string().describe("The thoughts of the model."),
  signature,
});
const toolUse = z.object({
  type: z.literal("tool_use"),
  id: z.string().describe("The id of this call. Its `tool_result` names it."),
  name: z.string(),
  caller: z.object({ type: z.literal("direct") }).describe("The caller: the model itself."),
  input: z.record(z.string(), z.unknown()).describe("The arguments. The model wrote them: check them."),
});

export const contentBlock = z.discriminatedUnion("type", [text, thinking, toolUse]);

const stop_reason = z
  .enum(["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"])
  .nullable()
  .describe(
    "The reason for the end of the answer; null before. `end_turn` also where a runtime does not tell of a stop sequence.",
  );
const stop_sequence = z
  .string()
  .nullable()
  .describe("The text of `stop_sequences` that ended the answer, where the runtime tells it.");

const ending = {
  container: none("no code runs in one"),
  stop_details: none("nothing tells why a model refuses"),
  stop_reason,
  stop_sequence,
};

/** A message: complete, or its beginning in a stream. */
export const message = z.object({
  id: z.string(),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string().describe("The model that answered."),
  content: z.array(contentBlock).describe("The acts of the model in their order: thoughts, texts and calls of tools."),
  ...ending,
  usage: messageUsage,
});

/** The error body of the Messages API, as an answer and inside a stream. */
export const messageError = z.object({
  type: z.literal("error"),
  error: z
    .object({
      type: z.string().describe("The kind of error, as Anthropic has them."),
      message: z.string().describe("The error and its remedy, for a person."),
      code: z.string().nullable(),
      param: z.string().nullable(),
      details: z
        .object({
          error_code: z.literal("thread_unsupported_request").describe("That no thread is kept here."),
          unsupported: z.array(z.literal("thread")).describe("Always `thread`."),
        })
        .optional()
        .describe("Only where `thread` was sent: Anthropic's SDK then sends the whole conversation."),
    })
    .describe("The error."),
  request_id: z.string().describe("The same as in `x-request-id`."),
});

const delta = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("text_delta"), text: z.string() }),
    z.object({ type: z.literal("thinking_delta"), thinking: z.string().describe("The thoughts of the model.") }),
    z.object({ type: z.literal("signature_delta"), signature }),
    z.object({
      type: z.literal("input_json_delta"),
      partial_json: z.string().describe("All of these pieces together are one JSON object."),
    }),
  ])
  .describe("The next piece.");

export const messageEvent = z.discriminatedUnion("type", [
  event("message_start", { message: message.describe("The message without its content.") }),
  event("content_block_start", {
    index: place,
    content_block: contentBlock.describe("The block without its content."),
  }),
  event("content_block_delta", { index: place, delta }),
  event("content_block_stop", { index: place }),
  event("message_delta", {
    delta: z.object(ending).describe("The end of the answer."),
    usage: messageUsage,
  }),
  event("message_stop", {}),
  event("ping", {}),
  messageError,
]);

export const tokenCount = z.object({ input_tokens: count.describe("The tokens of the prompt.") });

export const messageModel = z.object({
  type: z.literal("model"),
  id: z.string().describe("The name for requests."),
  display_name: z.string().describe("The same: models have no other name here."),
  created_at: z.string().describe("The time at which the model came to be, such as `2026-01-31T12:00:00.000Z`."),
  max_input_tokens: count.describe("The most tokens that a request and its answer may have together."),
});

export const messageModelPage = z.object({
  data: z.array(messageModel).describe("The models, by their ids."),
  has_more: z.boolean().describe("True if there are models behind these, or with `before_id` before them."),
  first_id: z.string().nullable().describe("The first id of the page; null where the page is empty."),
  last_id: z.string().nullable().describe("The last id of the page; null where the page is empty."),
});
