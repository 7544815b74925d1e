import { z } from "zod";
import { choicesMax } from "../answer/answer-event.ts";

/**
 * The body of a `chat` job: a chat request in the form between gateway and agent, with OpenAI's names. The gateway has
 * normalised what OpenAI allows in several forms (`developer`, `max_completion_tokens`, a single `stop`). The schemas of
 * the outer APIs are made of these. They leave out unknown fields; an agent refuses a body that has one (`readBody`), so
 * that an older agent never drops a field of a newer gateway.
 */

export const textPart = z.object({ type: z.literal("text"), text: z.string() });
export const imagePart = z.object({
  type: z.literal("image_url"),
  image_url: z.object({ url: z.string(), detail: z.enum(["auto", "low", "high"]).optional() }),
});

export const textContent = z.union([z.string(), z.array(textPart).min(1)]);
export const userContent = z.union([z.string(), z.array(z.discriminatedUnion("type", [textPart, imagePart])).min(1)]);

export const toolCall = z.object({
  id: z.string().min(1),
  type: z.literal("function"),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
});

export const systemMessage = z.object({
  role: z.literal("system"),
  content: textContent,
  name: z.string().optional(),
});
export const userMessage = z.object({
  role: z.literal("user"),
  content: userContent,
  name: z.string().optional(),
});
export const assistantMessage = z.object({
  role: z.literal("assistant"),
  content: textContent.nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(toolCall).min(1).optional(),
  name: z.string().optional(),
});
export const toolMessage = z.object({
  role: z.literal("tool"),
  content: textContent,
  tool_call_id: z.string().min(1),
});

export const chatMessage = z.discriminatedUnion("role", [systemMessage, userMessage, assistantMessage, toolMessage]);
export type ChatMessage = z.infer<typeof chatMessage>;

export const toolDefinition = z.object({
  type: z.literal("function"),
  function: z.object({
    name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, underscores or hyphens"),
    description: z.string().optional(),
    parameters: z.record(z.string(), z.unknown()).optional(),
    strict: z.boolean().nullish(),
  }),
});
export type ToolDefinition = z.infer<typeof toolDefinition>;

export const toolChoice = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ type: z.literal("function"), function: z.object({ name: z.string().min(1) }) }),
]);

export const responseFormat = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  z.object({
    type: z.literal("json_schema"),
    json_schema: z.object({
      name: z.string().min(1).max(64),
      description: z.string().optional(),
      schema: z.record(z.string(), z.unknown()).optional(),
      strict: z.boolean().nullish(),
    }),
  }),
]);

export const reasoningEffort = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

export const toolsMax = 128;
/** OpenAI allows four. Code completion clients send a dozen, and every supported runtime accepts them. */
export const stopsMax = 16;
export const stopText = z.string().min(1).max(1_024);

/** All fields of a chat request that change the answer, except the model. */
export const chatBody = z.object({
  messages: z.array(chatMessage).min(1),
  tools: z.array(toolDefinition).min(1).max(toolsMax).optional(),
  tool_choice: toolChoice.optional(),
  parallel_tool_calls: z.boolean().optional(),
  max_tokens: z.int().min(1).optional(),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  frequency_penalty: z.number().min(-2).max(2).optional(),
  presence_penalty: z.number().min(-2).max(2).optional(),
  seed: z.int().optional(),
  stop: z.array(stopText).min(1).max(stopsMax).optional(),
  n: z.int().min(1).max(choicesMax).optional(),
  logprobs: z.boolean().optional(),
  top_logprobs: z.int().min(0).max(20).optional(),
  logit_bias: z.record(z.string(), z.number().min(-100).max(100)).optional(),
  response_format: responseFormat.optional(),
  reasoning_effort: reasoningEffort.optional(),
});
export type ChatBody = z.infer<typeof chatBody>;

/** Returns the text of a message's content: its text parts joined. */
export function contentText(content: ChatMessage["content"]): string {
  if (content === null || content === undefined) return "";
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
