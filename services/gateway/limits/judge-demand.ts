import type { Book } from "#shared/records/book.ts";
import type { BudgetPeriod } from "#shared/admin/key-terms.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import {
  noSeat,
  type Allowance,
  type Demand,
  type Growth,
  type Held,
  type Reservation,
  type Refusal,
  type LimitStatus,
} from "./limits.ts";

export const windowMs = 60_000;

/** The largest rounding error of draining. */
export const roundingUnits = 1e-6;

/**
 * The levels of a book's two limits per minute at a moment. Each is a bucket (GCRA, counted in units of the limit and not in
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

/** The use of a book's limits at the moment when one of its requests asks to run. */
export interface LimitsUse {
  readonly levels: Levels;
  readonly seatsTaken: number;
  /** Budget tokens: used, and reserved by requests under way. */
  readonly spent: number;
  readonly reserved: number;
}

/** A book as a demand finds it, and the share of its limits that judges the demand. */
export interface BookUse extends LimitsUse {
  readonly book: Book;
  readonly share: KeyLimits;
}

export type Verdict =
  | { readonly outcome: "admit"; readonly held: readonly Held[] }
  | { readonly outcome: "refuse"; readonly by: Refusal; readonly at: number };

/** The wait when requests under way hold the rest of a limit. They may end at any moment, and a second is soon. */
const underWayWaitMs = 1_000;

/**
 * A reservation grows by so many tokens at a time, beyond those that its request uses. A prompt, whose tokens are estimated,
 * may be longer by as many than what is left.
 */
export const growthTokens = 1_000;

/**
 * Decides if a request may run under its share of the limits of its books. All are judged before any of them is taken; the
 * first that is full refuses. The script of `RedisLimitsBook` decides the same.
 */
export function judgeDemand(demand: Demand, uses: readonly BookUse[]): Verdict {
  for (const [at, use] of uses.entries()) {
    const by = refusalOf(demand, use);
    if (by !== undefined) return { outcome: "refuse", by, at };
  }
  return { outcome: "admit", held: uses.map((use) => heldOf(demand, use)) };
}

function heldOf({ tokens }: Demand, { book, share, spent, reserved }: BookUse): Held {
  const { tokensPerMinute, budget } = share;
  return {
    book,
    tokens: Math.min(tokens, tokensPerMinute ?? 0),
    budgetTokens: budget === undefined ? 0 : Math.min(tokens, budget.tokens - spent - reserved),
  };
}

function refusalOf({ tokens, promptTokens = 0 }: Demand, { book, share, ...state }: BookUse): Refusal | undefined {
  const { requestsPerMinute, tokensPerMinute, concurrency, budget } = share;
  const { tokensPerMinute: promptMax = Infinity, budget: { tokens: budgetTokens } = { tokens: Infinity } } =
    book.limits;
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

/**
 * Returns the reservation with what each book has left for it; `uses` has the books in their order. The script of
 * `RedisLimitsBook` decides the same.
 */
export function growReservation({ reservation, usedTokens }: Growth, uses: readonly BookUse[]): Reservation {
  const grown = (held: number, left: number): number =>
    held + Math.max(0, Math.min(usedTokens + growthTokens - held, Math.floor(left + roundingUnits)));
  const held = reservation.held.map((each, at): Held => {
    const { share, levels, spent, reserved } = uses[at] as BookUse;
    const { tokensPerMinute, budget } = share;
    return {
      book: each.book,
      tokens: tokensPerMinute === undefined ? each.tokens : grown(each.tokens, tokensPerMinute - levels.tokens),
      budgetTokens:
        budget === undefined ? each.budgetTokens : grown(each.budgetTokens, budget.tokens - spent - reserved),
    };
  });
  return { ...reservation, held };
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

/** Returns the tightest of several statuses: of each limit, the allowance with the least left. */
export function tightest(statuses: readonly LimitStatus[]): LimitStatus {
  const [first = {}, ...others] = statuses;
  return others.reduce(
    (least, each) => ({
      requests: lesser(least.requests, each.requests),
      tokens: lesser(least.tokens, each.tokens),
    }),
    first,
  );
}

function lesser(one: Allowance | undefined, other: Allowance | undefined): Allowance | undefined {
  return one === undefined || (other !== undefined && other.remaining < one.remaining) ? other : one;
}

/** Returns the status that a refusal reports: the rates of the book that refuses, and of the others where it has none. */
export function refusedStatus(statuses: readonly LimitStatus[], at: number): LimitStatus {
  const { requests, tokens } = tightest(statuses);
  return { requests: statuses[at]?.requests ?? requests, tokens: statuses[at]?.tokens ?? tokens };
}

/** Returns the limits that judge a demand. */
export function judgingLimits({ seat }: Pick<Demand, "seat">, limits: KeyLimits): KeyLimits {
  return seat === noSeat ? { requestsPerMinute: limits.requestsPerMinute } : limits;
}

/** True if the requests of a book are tracked one by one while they are under way. */
export function needsSeat({ limits }: Book): boolean {
  return limits.concurrency !== undefined || limits.budget !== undefined;
}

/** True if a reservation has a seat in any of its books. */
export function hasSeat({ held }: Pick<Reservation, "held">): boolean {
  return held.some(({ book }) => needsSeat(book));
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
