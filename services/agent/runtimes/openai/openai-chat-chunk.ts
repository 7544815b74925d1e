import { z } from "zod";
import { tokenLogprobs, type AnswerEvent, type TokenLogprobs } from "#shared/answer/answer-event.ts";

const count = z.int().nonnegative().nullish().catch(undefined);

const usage = z.object({
  prompt_tokens: z.int().nonnegative(),
  completion_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count }).nullish().catch(undefined),
  completion_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(undefined),
});
type ChunkUsage = z.infer<typeof usage>;

const delta = z.object({
  content: z.string().nullish(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(
      z.object({
        index: z.int().nonnegative().nullish(),
        id: z.string().nullish(),
        function: z
          .object({
            name: z.string().nullish(),
            arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
});

const choice = z.object({
  index: z.int().nonnegative().nullish(),
  delta: delta.nullish(),
  finish_reason: z.string().nullish(),
  logprobs: z
    .object({ content: z.array(z.unknown()).nullish() })
    .nullish()
    .catch(undefined),
});
export type ChunkChoice = z.infer<typeof choice>;

/** One event of an answer, of which every server leaves other parts out. Extras that are malformed count as left out. */
export const chatChunk = z.object({
  choices: z.array(choice).nullish(),
  usage: usage.nullish().catch(undefined),
  prompt_progress: z.unknown().optional(),
});

/** One token's likelihood, of which some servers leave parts out. */
const tokenLogprob = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z
    .array(z.int())
    .nullish()
    .transform((bytes) => bytes ?? null),
});
const choiceLogprobs = z
  .array(
    tokenLogprob.extend({
      top_logprobs: z
        .array(tokenLogprob)
        .nullish()
        .transform((others) => others ?? []),
    }),
  )
  .pipe(tokenLogprobs);

/** The likelihoods that came with a text, where they did, with no more alternatives than were asked for. */
export function chunkLogprobs({ logprobs }: ChunkChoice, alternatives: number): TokenLogprobs | undefined {
  const told = choiceLogprobs.safeParse(logprobs?.content);
  if (!told.success || told.data.length === 0) return undefined;
  return told.data.map((token) => ({ ...token, top_logprobs: token.top_logprobs.slice(0, alternatives) }));
}

export function usageEvent(told: ChunkUsage): AnswerEvent {
  const cachedTokens = told.prompt_tokens_details?.cached_tokens;
  const reasoningTokens = told.completion_tokens_details?.reasoning_tokens;
  return {
    kind: "usage",
    promptTokens: told.prompt_tokens,
    completionTokens: told.completion_tokens ?? 0,
    ...(typeof cachedTokens === "number" && { cachedTokens }),
    ...(typeof reasoningTokens === "number" && { reasoningTokens }),
  };
}
