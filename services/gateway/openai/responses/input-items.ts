import { z } from "zod";

/** Fields of items that came in an earlier answer and are sent back. Models do not get them. */
const asAnswered = { id: z.string().nullish(), status: z.string().nullish() };

const inputText = z.object({ type: z.literal("input_text"), text: z.string() });
const inputImage = z.object({
  type: z.literal("input_image"),
  image_url: z.string(),
  detail: z.enum(["auto", "low", "high", "original"]).nullish(),
});
const outputText = z.object({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(z.unknown()).nullish(),
  logprobs: z.array(z.unknown()).nullish(),
});
const refusal = z.object({ type: z.literal("refusal"), refusal: z.string() });
export const messagePart = z.discriminatedUnion("type", [inputText, inputImage, outputText, refusal]);

/** A message. Most clients leave out its `type`. */
export const messageItem = z.object({
  type: z.literal("message").optional(),
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

/** A function that the model called. */
export const callItem = z.object({
  type: z.literal("function_call"),
  call_id: z.string().min(1),
  namespace: z.string().min(1).nullish(),
  name: z.string().min(1),
  arguments: z.string(),
  ...asAnswered,
});

/** The output of a called function. */
export const callOutputItem = z.object({
  type: z.literal("function_call_output"),
  call_id: z.string().min(1),
  output: z.union([z.string(), z.array(inputText)]),
  ...asAnswered,
});

/** One item of a conversation as clients of the Responses API write it. */
export const inputItem = z.discriminatedUnion("type", [messageItem, reasoningItem, callItem, callOutputItem]);

export type MessageItem = z.infer<typeof messageItem>;
export type ReasoningItem = z.infer<typeof reasoningItem>;
export type CallItem = z.infer<typeof callItem>;
export type CallOutputItem = z.infer<typeof callOutputItem>;
export type MessagePart = z.infer<typeof messagePart>;
export type InputItem = z.infer<typeof inputItem>;

/** Returns the text of a part. An image has none. */
export function textOf(part: MessagePart): string {
  if (part.type === "refusal") return part.refusal;
  return part.type === "input_image" ? "" : part.text;
}
