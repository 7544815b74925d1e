import { z } from "zod";
import type { EngineRequest } from "./engine.ts";
import { blocksOf, charactersPerToken } from "./prefix-cache.ts";

const content = z.union([z.string(), z.array(z.looseObject({ text: z.string().default("") }))]).nullish();
const call = z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.string() }) });
export const chatRequest = z.looseObject({
  model: z.string(),
  stream: z.boolean().default(false),
  max_tokens: z.number().nullish(),
  max_completion_tokens: z.number().nullish(),
  cache_salt: z.string().nullish(),
  tools: z.array(z.unknown()).nullish(),
  messages: z.array(z.looseObject({ role: z.string(), content, tool_calls: z.array(call).nullish() })),
});

/** A prompt ends in the length of its answer, which no router can know beforehand. */
export function answerWish(tokens: number): string {
  return `[answer ${tokens}]`;
}
const wished = /\[answer (\d+)\]\s*$/;
const answerTokensDefault = 8;

/** Renders a chat as a template does: the next turn begins with the whole of this prompt and its answer. */
export function engineRequest(
  id: number,
  chat: z.infer<typeof chatRequest>,
): { readonly request: EngineRequest; readonly answer: string } {
  const texts = chat.messages.map(({ content: said }) =>
    typeof said === "string" ? said : (said ?? []).map(({ text }) => text).join(""),
  );
  const turns = chat.messages.map(({ role, tool_calls: calls }, place) => {
    const called = (calls ?? []).map(({ function: { name, arguments: given } }) => `\n<call>${name}${given}`);
    return `\n<${role}>\n${texts[place]}${called.join("")}`;
  });
  const tools = chat.tools ? JSON.stringify(chat.tools) : "";
  const prompt = `${tools}${turns.join("")}\n<assistant>\n`;
  const limit = chat.max_completion_tokens ?? chat.max_tokens ?? Infinity;
  const answerTokens = Math.max(
    1,
    Math.min(limit, Number(wished.exec(texts.at(-1) ?? "")?.[1] ?? answerTokensDefault)),
  );
  const promptTokens = Math.ceil(prompt.length / charactersPerToken);
  const salt = chat.cache_salt ?? "";
  const promptBlocks = blocksOf(prompt, salt);
  const answer = answerText(promptBlocks.at(-1) ?? prompt.length, answerTokens);
  const allBlocks = blocksOf(prompt + answer, salt);
  return { request: { id, promptTokens, answerTokens, promptBlocks, allBlocks }, answer };
}

/** Words of one token each, others for each prompt. */
function answerText(seed: number, tokens: number): string {
  const word = (place: number): string => ((seed + place * 7_919) % 46_656).toString(36).padStart(3, "0");
  return Array.from({ length: tokens }, (_, place) => `${word(place)} `).join("");
}
