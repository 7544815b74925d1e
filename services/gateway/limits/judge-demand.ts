import type { KeyLimits } from "#shared/keys/key-limits.ts";
import type { Refusal, Standing } from "./limits.ts";
import { allowanceOf, costWithin, requestRate, tokenRate, waitMsFor } from "./rate.ts";

/** The use of a key's limits at the moment when one of its requests asks to run. */
export interface KeyState {
  /** The levels of the buckets of the limits per minute. */
  readonly requestsUsed: number;
  readonly tokensUsed: number;
  readonly seatsTaken: number;
  /** Budget tokens: used, and reserved by requests under way. */
  readonly spent: number;
  readonly reserved: number;
}

export type Verdict =
  | { readonly outcome: "admit"; readonly tokens: number; readonly budgetTokens: number }
  | { readonly outcome: "refuse"; readonly by: Refusal };

/** The wait when requests under way hold the rest of a limit. They may end at any moment, and a second is soon. */
const underWayWaitMs = 1_000;

/** Decides if a request of `tokens` tokens may run. The script of `RedisLimits` decides the same. */
export function judgeDemand(tokens: number, limits: KeyLimits, state: KeyState): Verdict {
  const by = refusalOf(tokens, limits, state);
  if (by !== undefined) return { outcome: "refuse", by };
  const { tokensPerMinute, budget } = limits;
  return {
    outcome: "admit",
    tokens: tokensPerMinute === undefined ? 0 : costWithin(tokenRate(tokensPerMinute), tokens),
    budgetTokens: budget === undefined ? 0 : Math.min(tokens, budget.tokens - state.spent - state.reserved),
  };
}

function refusalOf(tokens: number, limits: KeyLimits, state: KeyState): Refusal | undefined {
  const { requestsPerMinute, tokensPerMinute, concurrency, budget } = limits;
  if (budget !== undefined && state.spent >= budget.tokens) return "budget";
  if (budget !== undefined && state.spent + state.reserved >= budget.tokens) return "budget_reserved";
  if (concurrency !== undefined && state.seatsTaken >= concurrency) return "concurrency";
  if (requestsPerMinute !== undefined && waitMsFor(1, state.requestsUsed, requestRate(requestsPerMinute)) > 0)
    return "requests";
  if (tokensPerMinute !== undefined && waitMsFor(tokens, state.tokensUsed, tokenRate(tokensPerMinute)) > 0)
    return "tokens";
  return undefined;
}

interface Refused {
  readonly by: Refusal;
  readonly tokens: number;
  readonly limits: KeyLimits;
  readonly used: Pick<KeyState, "requestsUsed" | "tokensUsed">;
  readonly budgetEndsInMs: number;
}

/** Returns the time after which a refused request may be worth a retry. */
export function waitMsOf({ by, tokens, limits, used, budgetEndsInMs }: Refused): number {
  switch (by) {
    case "requests":
      return waitMsFor(1, used.requestsUsed, requestRate(limits.requestsPerMinute ?? 1));
    case "tokens":
      return waitMsFor(tokens, used.tokensUsed, tokenRate(limits.tokensPerMinute ?? 1));
    case "concurrency":
    case "budget_reserved":
      return underWayWaitMs;
    case "budget":
      return budgetEndsInMs;
  }
}

export function standingOf(limits: KeyLimits, used: Pick<KeyState, "requestsUsed" | "tokensUsed">): Standing {
  const { requestsPerMinute: requests, tokensPerMinute: tokens } = limits;
  return {
    requests: requests === undefined ? undefined : allowanceOf(used.requestsUsed, requestRate(requests)),
    tokens: tokens === undefined ? undefined : allowanceOf(used.tokensUsed, tokenRate(tokens)),
  };
}
