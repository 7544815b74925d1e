import { z } from "zod";

/** What of a chat is looked at to decide whether a server refuses it. */
export const askedChat = z.looseObject({
  model: z.string().optional(),
  messages: z.array(
    z.looseObject({ role: z.string(), content: z.unknown().optional(), tool_calls: z.unknown().optional() }),
  ),
  stream: z.boolean().optional(),
  stream_options: z.looseObject({}).optional(),
  tools: z.array(z.unknown()).optional(),
  tool_choice: z.unknown().optional(),
  n: z.number().optional(),
  max_tokens: z.number().optional(),
  logprobs: z.boolean().optional(),
  top_logprobs: z.number().optional(),
  response_format: z.looseObject({ type: z.string() }).optional(),
  reasoning_effort: z.string().optional(),
  continue_final_message: z.boolean().optional(),
  add_generation_prompt: z.boolean().optional(),
});
export type AskedChat = z.infer<typeof askedChat>;

/** How many tokens a prompt has, for models to which a word is a token. */
export function tokensIn({ messages }: Pick<AskedChat, "messages">): number {
  return messages.reduce((sum, { content }) => sum + wordsIn(textIn(content)), 0);
}

export function wordsIn(text: string): number {
  return text.split(/\s+/).filter((word) => word !== "").length;
}

/** The text of a content, in either of its forms. */
export function textIn(content: unknown): string {
  const parts = z.array(z.looseObject({ type: z.string(), text: z.string().optional() })).safeParse(content);
  if (parts.success) return parts.data.map(({ text = "" }) => text).join(" ");
  return typeof content === "string" ? content : "";
}

/** The types of all content parts but texts. */
export function mediaIn({ messages }: Pick<AskedChat, "messages">): string[] {
  const part = z.looseObject({ type: z.string() });
  return messages
    .flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .flatMap((each) => part.safeParse(each).data?.type ?? [])
    .filter((type) => type !== "text");
}

/** What of a text that is to be continued is looked at to decide whether a server refuses it. */
export const askedText = z.looseObject({
  model: z.string().optional(),
  prompt: z.string(),
  suffix: z.string().optional(),
  max_tokens: z.number().optional(),
  logprobs: z.unknown().optional(),
});
export type AskedText = z.infer<typeof askedText>;
