import type { BudgetPeriod } from "#shared/admin/key-terms.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import {
  noSeat,
  type Allowance,
  type Demand,
  type Growth,
  type Hold,
  type Refusal,
  type LimitStatus,
} from "./limits.ts";

/**
 * A limit per minute, as a bucket (GCRA, counted in units of the limit and not in time). Every request fills the
 * bucket, which drains evenly, a whole limit in a minute. A limit of N admits N at once, and then one each N-th of a
 * minute. Counts in units are exact for any size of limit and stay correct when the limit changes. They do not depend
 * on a clock that was set back.
 */
export interface Rate {
  readonly limit: number;
  /** The highest level of the bucket. That of tokens has none: a debt is paid back whole. */
  readonly usedMax: number;
}

/** The level of a bucket at a moment. */
export interface Used {
  readonly units: number;
  readonly atMs: number;
}

export const windowMs = 60_000;

/** The largest rounding error of draining. */
export const roundingUnits = 1e-6;

export const unused: Used = { units: 0, atMs: 0 };

export function requestRate(limit: number): Rate {
  return { limit, usedMax: limit };
}

export function tokenRate(limit: number): Rate {
  return { limit, usedMax: Infinity };
}

/**
 * Returns the cost, but at most the whole limit. A request that costs more may thus pass when nothing else was used;
 * its real use is charged.
 */
export function costWithin(rate: Rate, cost: number): number {
  return Math.min(cost, rate.limit);
}

export function usedAt(used: Used, rate: Rate, nowMs: number): Used {
  const elapsedMs = Math.max(0, nowMs - used.atMs);
  const left = used.units - (elapsedMs * rate.limit) / windowMs;
  return { units: Math.min(Math.max(0, left), rate.usedMax), atMs: nowMs };
}

/** Returns the time until a cost may be taken; zero means now. */
export function waitMsFor(cost: number, units: number, rate: Rate): number {
  return msToDrain(units + costWithin(rate, cost) - rate.limit, rate);
}

/** Charges a cost whatever is left. A negative cost is given back. */
export function charge(used: Used, cost: number, rate: Rate): Used {
  return { units: Math.min(Math.max(0, used.units + cost), rate.usedMax), atMs: used.atMs };
}

export function allowanceOf(units: number, rate: Rate): Allowance {
  return {
    limit: rate.limit,
    remaining: Math.max(0, Math.floor(rate.limit - units + roundingUnits)),
    resetMs: msToDrain(units, rate),
  };
}

function msToDrain(units: number, rate: Rate): number {
  return Math.ceil((Math.max(0, units - roundingUnits) * windowMs) / rate.limit);
}

/** The use of a key's limits at the moment when one of its requests asks to run. */
export interface LimitsUse {
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

/**
 * A hold grows by so many tokens at a time, beyond those that its request uses. A prompt, whose tokens are estimated,
 * may be longer by as many than what is left.
 */
export const growthTokens = 1_000;

/** Decides if a request may run under this share of its limits. The script of `RedisLimitsBook` decides the same. */
export function judgeDemand(demand: Demand, share: KeyLimits, state: LimitsUse): Verdict {
  const by = refusalOf(demand, share, state);
  if (by !== undefined) return { outcome: "refuse", by };
  const { tokens } = demand;
  const { tokensPerMinute, budget } = share;
  return {
    outcome: "admit",
    tokens: tokensPerMinute === undefined ? 0 : costWithin(tokenRate(tokensPerMinute), tokens),
    budgetTokens: budget === undefined ? 0 : Math.min(tokens, budget.tokens - state.spent - state.reserved),
  };
}

function refusalOf(demand: Demand, share: KeyLimits, state: LimitsUse): Refusal | undefined {
  const { tokens, promptTokens = 0, limits } = demand;
  const { requestsPerMinute, tokensPerMinute, concurrency, budget } = share;
  const { tokensPerMinute: promptMax = Infinity, budget: { tokens: budgetTokens } = { tokens: Infinity } } = limits;
  if (budget !== undefined && state.spent >= budget.tokens) return "budget";
  const needed = promptTokens - growthTokens;
  if (needed > Math.max(0, Math.min(promptMax, budgetTokens - state.spent))) return "prompt";
  if (budget !== undefined && state.spent + state.reserved + Math.max(1, needed) > budget.tokens)
    return "budget_reserved";
  if (concurrency !== undefined && state.seatsTaken >= concurrency) return "concurrency";
  if (requestsPerMinute !== undefined && waitMsFor(1, state.requestsUsed, requestRate(requestsPerMinute)) > 0)
    return "requests";
  if (tokensPerMinute !== undefined && waitMsFor(tokens, state.tokensUsed, tokenRate(tokensPerMinute)) > 0)
    return "tokens";
  return undefined;
}

/** Returns the hold with what the limits have left for it. The script of `RedisLimitsBook` decides the same. */
export function growHold({ hold, usedTokens }: Growth, { tokensPerMinute, budget }: KeyLimits, state: LimitsUse): Hold {
  const grown = (held: number, left: number): number =>
    held + Math.max(0, Math.min(usedTokens + growthTokens - held, Math.floor(left + roundingUnits)));
  return {
    ...hold,
    tokens: tokensPerMinute === undefined ? hold.tokens : grown(hold.tokens, tokensPerMinute - state.tokensUsed),
    budgetTokens:
      budget === undefined ? hold.budgetTokens : grown(hold.budgetTokens, budget.tokens - state.spent - state.reserved),
  };
}

interface RefusedDemand {
  readonly by: Refusal;
  readonly tokens: number;
  readonly limits: KeyLimits;
  readonly used: Pick<LimitsUse, "requestsUsed" | "tokensUsed">;
  readonly budgetEndsInMs: number;
}

/** Returns the time after which a refused request may be worth a retry. */
export function waitMsOf({ by, tokens, limits, used, budgetEndsInMs }: RefusedDemand): number {
  switch (by) {
    case "requests":
      return waitMsFor(1, used.requestsUsed, requestRate(limits.requestsPerMinute ?? 1));
    case "tokens":
      return waitMsFor(tokens, used.tokensUsed, tokenRate(limits.tokensPerMinute ?? 1));
    case "concurrency":
    case "budget_reserved":
      return underWayWaitMs;
    case "budget":
    case "prompt":
      return budgetEndsInMs;
  }
}

export function limitStatusOf(limits: KeyLimits, used: Pick<LimitsUse, "requestsUsed" | "tokensUsed">): LimitStatus {
  const { requestsPerMinute: requests, tokensPerMinute: tokens } = limits;
  return {
    requests: requests === undefined ? undefined : allowanceOf(used.requestsUsed, requestRate(requests)),
    tokens: tokens === undefined ? undefined : allowanceOf(used.tokensUsed, tokenRate(tokens)),
  };
}

/** Returns the limits that judge a demand. */
export function judgingLimits({ seat }: Pick<Demand, "seat">, limits: KeyLimits): KeyLimits {
  return seat === noSeat ? { requestsPerMinute: limits.requestsPerMinute } : limits;
}

/** True if the requests of a key with these limits are tracked one by one while they are under way. */
export function needsSeat(limits: KeyLimits): boolean {
  return limits.concurrency !== undefined || limits.budget !== undefined;
}

interface PeriodOfTime {
  /** `2026-11-21` or `2026-11` (UTC). */
  readonly name: string;
  readonly beginsAtMs: number;
  readonly endsAtMs: number;
}

/** The latest period of each kind: nearly every question is about it, and there are many. */
const latestPeriods = new Map<BudgetPeriod, PeriodOfTime>();

/** Returns the budget period that contains `wallMs`. */
export function budgetPeriodAt(per: BudgetPeriod, wallMs: number): PeriodOfTime {
  const latest = latestPeriods.get(per);
  if (latest !== undefined && wallMs >= latest.beginsAtMs && wallMs < latest.endsAtMs) return latest;
  const at = new Date(wallMs);
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  const period =
    per === "day"
      ? { beginsAtMs: Date.UTC(year, month, day), endsAtMs: Date.UTC(year, month, day + 1) }
      : { beginsAtMs: Date.UTC(year, month, 1), endsAtMs: Date.UTC(year, month + 1, 1) };
  const named = { name: at.toISOString().slice(0, per === "day" ? 10 : 7), ...period };
  latestPeriods.set(per, named);
  return named;
}
