import { z } from "zod";
import { tokenLogprobs, type TokenLogprobs } from "#shared/protocol/answer-events.ts";

/** The logprob of one token. Some servers omit parts of it. */
const tokenLogprob = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z
    .array(z.int())
    .nullish()
    .transform((bytes) => bytes ?? null),
});
const listed = z
  .array(
    tokenLogprob.extend({
      top_logprobs: z
        .array(tokenLogprob)
        .nullish()
        .transform((others) => others ?? []),
    }),
  )
  .pipe(tokenLogprobs);

/** Logprobs in the form of chats. */
const inChats = z.object({ content: listed });

/** Logprobs in the form of completions: parallel lists, and the alternatives in no order. */
const sideBySide = z.object({
  tokens: z.array(z.string()).min(1),
  token_logprobs: z.array(z.number()),
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullish(),
});

/**
 * Returns the logprobs of a piece in the form of chats, with at most `alternatives` alternatives for each token. Some
 * servers send the form of chats for completions.
 */
export function logprobsIn(value: unknown, alternatives: number): TokenLogprobs | undefined {
  const chat = inChats.safeParse(value);
  if (chat.success && chat.data.content.length > 0) {
    return chat.data.content.map((token) => ({ ...token, top_logprobs: token.top_logprobs.slice(0, alternatives) }));
  }
  const lists = sideBySide.safeParse(value);
  if (!lists.success) return undefined;
  const { tokens, token_logprobs: likelihoods, top_logprobs: others } = lists.data;
  return tokens.flatMap((token, at) => {
    const logprob = likelihoods[at];
    if (logprob === undefined) return [];
    return [{ token, logprob, bytes: null, top_logprobs: likeliest(others?.[at] ?? {}, alternatives) }];
  });
}

function likeliest(others: Readonly<Record<string, number>>, count: number): TokenLogprobs[number]["top_logprobs"] {
  return Object.entries(others)
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, count)
    .map(([token, logprob]) => ({ token, logprob, bytes: null }));
}
