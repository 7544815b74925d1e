import type { BudgetPeriod } from "#shared/admin/key-terms.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import {
  noSeat,
  type Allowance,
  type Demand,
  type Growth,
  type Reservation,
  type Refusal,
  type LimitStatus,
} from "./limits.ts";

export const windowMs = 60_000;

/** The largest rounding error of draining. */
export const roundingUnits = 1e-6;

/**
 * The levels of a key's two limits per minute at a moment. Each is a bucket (GCRA, counted in units of the limit and not in
 * time): every request fills it, and it drains evenly, a whole limit in a minute. A limit of N admits N at once, and then
 * one each N-th of a minute. Counts in units are exact for any size of limit and stay correct when the limit changes. They
 * do not depend on a clock that was set back. A bucket without a limit is empty. That of requests holds its limit at most;
 * that of tokens holds any debt, which is paid back whole.
 */
export interface Levels {
  readonly requests: number;
  readonly tokens: number;
  readonly atMs: number;
}

export const emptyLevels: Levels = { requests: 0, tokens: 0, atMs: 0 };

/** Returns what is left in a bucket after it drained. */
export function drainedUnits(units: number, limit: number, elapsedMs: number): number {
  return Math.max(0, units - (Math.max(0, elapsedMs) * limit) / windowMs);
}

/** Returns the levels at a later moment. */
export function levelsAt({ requests, tokens, atMs }: Levels, limits: KeyLimits, nowMs: number): Levels {
  const { requestsPerMinute, tokensPerMinute } = limits;
  const elapsedMs = nowMs - atMs;
  return {
    requests:
      requestsPerMinute === undefined
        ? 0
        : Math.min(drainedUnits(requests, requestsPerMinute, elapsedMs), requestsPerMinute),
    tokens: tokensPerMinute === undefined ? 0 : drainedUnits(tokens, tokensPerMinute, elapsedMs),
    atMs: nowMs,
  };
}

/** Charges what was used, whatever is left. What is negative is given back. */
export function chargedLevels(
  { requests, tokens, atMs }: Levels,
  used: Omit<Levels, "atMs">,
  { requestsPerMinute, tokensPerMinute }: KeyLimits,
): Levels {
  return {
    requests: requestsPerMinute === undefined ? 0 : Math.min(Math.max(0, requests + used.requests), requestsPerMinute),
    tokens: tokensPerMinute === undefined ? 0 : Math.max(0, tokens + used.tokens),
    atMs,
  };
}

/**
 * Returns the time until a cost may be taken; zero means now. A request that costs more than the whole limit may pass when
 * nothing else was used; its real use is charged.
 */
export function waitMsFor(cost: number, units: number, limit: number): number {
  return msToDrain(units + Math.min(cost, limit) - limit, limit);
}

function allowanceOf(units: number, limit: number): Allowance {
  return {
    limit,
    remaining: Math.max(0, Math.floor(limit - units + roundingUnits)),
    resetMs: msToDrain(units, limit),
  };
}

function msToDrain(units: number, limit: number): number {
  return Math.ceil((Math.max(0, units - roundingUnits) * windowMs) / limit);
}

/** The use of a key's limits at the moment when one of its requests asks to run. */
export interface LimitsUse {
  readonly levels: Levels;
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
 * A reservation grows by so many tokens at a time, beyond those that its request uses. A prompt, whose tokens are estimated,
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
    tokens: Math.min(tokens, tokensPerMinute ?? 0),
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
  const { levels } = state;
  if (requestsPerMinute !== undefined && waitMsFor(1, levels.requests, requestsPerMinute) > 0) return "requests";
  if (tokensPerMinute !== undefined && waitMsFor(tokens, levels.tokens, tokensPerMinute) > 0) return "tokens";
  return undefined;
}

/** Returns the reservation with what the limits have left for it. The script of `RedisLimitsBook` decides the same. */
export function growReservation(
  { reservation, usedTokens }: Growth,
  { tokensPerMinute, budget }: KeyLimits,
  state: LimitsUse,
): Reservation {
  const grown = (held: number, left: number): number =>
    held + Math.max(0, Math.min(usedTokens + growthTokens - held, Math.floor(left + roundingUnits)));
  return {
    ...reservation,
    tokens:
      tokensPerMinute === undefined
        ? reservation.tokens
        : grown(reservation.tokens, tokensPerMinute - state.levels.tokens),
    budgetTokens:
      budget === undefined
        ? reservation.budgetTokens
        : grown(reservation.budgetTokens, budget.tokens - state.spent - state.reserved),
  };
}

interface RefusedDemand {
  readonly by: Refusal;
  readonly tokens: number;
  readonly limits: KeyLimits;
  readonly levels: Omit<Levels, "atMs">;
  readonly budgetEndsInMs: number;
}

/** Returns the time after which a refused request may be worth a retry. */
export function waitMsOf({ by, tokens, limits, levels, budgetEndsInMs }: RefusedDemand): number {
  switch (by) {
    case "requests":
      return waitMsFor(1, levels.requests, limits.requestsPerMinute ?? 1);
    case "tokens":
      return waitMsFor(tokens, levels.tokens, limits.tokensPerMinute ?? 1);
    case "concurrency":
    case "budget_reserved":
      return underWayWaitMs;
    case "budget":
    case "prompt":
      return budgetEndsInMs;
  }
}

export function limitStatusOf(limits: KeyLimits, levels: Omit<Levels, "atMs">): LimitStatus {
  const { requestsPerMinute: requests, tokensPerMinute: tokens } = limits;
  return {
    requests: requests === undefined ? undefined : allowanceOf(levels.requests, requests),
    tokens: tokens === undefined ? undefined : allowanceOf(levels.tokens, tokens),
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
