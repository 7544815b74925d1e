import { z } from "zod";
import type { AnswerEvent } from "#shared/answer/answer-event.ts";

const count = z.int().nonnegative().nullish().catch(undefined);

/** The usage of an answer. Malformed extra fields count as missing. */
export const toldUsage = z.object({
  prompt_tokens: z.int().nonnegative(),
  completion_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count }).nullish().catch(undefined),
  completion_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(undefined),
});

export function usageEvent(told: z.infer<typeof toldUsage>): AnswerEvent {
  const cachedTokens = told.prompt_tokens_details?.cached_tokens;
  const reasoningTokens = told.completion_tokens_details?.reasoning_tokens;
  return {
    kind: "usage",
    promptTokens: told.prompt_tokens,
    completionTokens: told.completion_tokens ?? 0,
    cachedTokens: cachedTokens ?? undefined,
    reasoningTokens: reasoningTokens ?? undefined,
  };
}
