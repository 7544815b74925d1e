import type { Book } from "#shared/records/book.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import {
  type Amounts,
  amountsOf,
  type Budget,
  budgetPeriodAt,
  budgetsOf,
  type BudgetUnit,
  judgingBudgets,
  limitOfUnit,
  moneyFor,
  noAmounts,
} from "./budgets.ts";
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
  /** Of budgets: used, and reserved by requests under way. */
  readonly spent: Amounts;
  readonly reserved: Amounts;
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

function heldOf(demand: Demand, { book, share, spent, reserved }: BookUse): Held {
  const wanted = amountsOf(demand.tokens, demand);
  const held: Record<BudgetUnit, number> = { ...noAmounts };
  for (const { unit, limit } of judgingBudgets(share, demand.rate))
    held[unit] = Math.min(wanted[unit], limit - spent[unit] - reserved[unit]);
  return { book, tokens: Math.min(demand.tokens, share.tokensPerMinute ?? 0), reserved: held };
}

function refusalOf(demand: Demand, { book, share, levels, seatsTaken, spent, reserved }: BookUse): Refusal | undefined {
  const { tokens, rate } = demand;
  const { requestsPerMinute, tokensPerMinute, concurrency } = share;
  const budgets = judgingBudgets(share, rate);
  const spentOut = budgets.find(({ unit, limit }) => spent[unit] >= limit);
  if (spentOut !== undefined) return limitOfUnit[spentOut.unit];
  const needed = neededOf(demand);
  const isTooLong = judgingBudgets(book.limits, rate).some(({ unit, limit }) => needed[unit] > limit - spent[unit]);
  if (isTooLong || needed.tokens > (book.limits.tokensPerMinute ?? Infinity)) return "prompt";
  const full = budgets.find(({ unit, limit }) => spent[unit] + reserved[unit] + Math.max(1, needed[unit]) > limit);
  if (full !== undefined) return `${limitOfUnit[full.unit]}_reserved`;
  if (concurrency !== undefined && seatsTaken >= concurrency) return "concurrency";
  if (requestsPerMinute !== undefined && waitMsFor(1, levels.requests, requestsPerMinute) > 0) return "requests";
  if (tokensPerMinute !== undefined && waitMsFor(tokens, levels.tokens, tokensPerMinute) > 0) return "tokens";
  return undefined;
}

/** Returns what a book must have left for the prompt of a demand. Its tokens are estimated, so that it may be longer. */
export function neededOf({ promptTokens = 0, rate }: Pick<Demand, "promptTokens" | "rate">): Amounts {
  return { tokens: promptTokens - growthTokens, money: rate.fixed - moneyFor(growthTokens, rate) };
}

/** Returns what a reservation should hold from now on. */
export function wantedOf({ reservation: { rate }, promptTokens, usedTokens }: Growth): Amounts {
  return amountsOf(usedTokens + growthTokens, { promptTokens, rate });
}

/**
 * Returns the reservation with what each book has left for it; `uses` has the books in their order. The script of
 * `RedisLimitsBook` decides the same.
 */
export function growReservation(growth: Growth, uses: readonly BookUse[]): Reservation {
  const wanted = wantedOf(growth);
  const grown = (held: number, want: number, left: number): number =>
    held + Math.max(0, Math.min(want - held, Math.floor(left + roundingUnits)));
  const held = growth.reservation.held.map((each, at): Held => {
    const { share, levels, spent, reserved } = uses[at] as BookUse;
    const { tokensPerMinute } = share;
    const all: Record<BudgetUnit, number> = { ...each.reserved };
    for (const { unit, limit } of judgingBudgets(share, growth.reservation.rate))
      all[unit] = grown(all[unit], wanted[unit], limit - spent[unit] - reserved[unit]);
    const ofMinute = tokensPerMinute === undefined ? 0 : tokensPerMinute - levels.tokens;
    return { book: each.book, tokens: grown(each.tokens, wanted.tokens, ofMinute), reserved: all };
  });
  return { ...growth.reservation, held };
}

interface RefusedDemand {
  readonly by: Refusal;
  readonly tokens: number;
  readonly limits: KeyLimits;
  readonly levels: Omit<Levels, "atMs">;
  readonly wallMs: number;
}

/** Returns the time after which a refused request may be worth a retry. */
export function waitMsOf({ by, tokens, limits, levels, wallMs }: RefusedDemand): number {
  switch (by) {
    case "requests":
      return waitMsFor(1, levels.requests, limits.requestsPerMinute ?? 1);
    case "tokens":
      return waitMsFor(tokens, levels.tokens, limits.tokensPerMinute ?? 1);
    case "concurrency":
    case "budget_reserved":
    case "spend_reserved":
      return underWayWaitMs;
    case "budget":
    case "spend":
    case "prompt":
      return Math.max(0, ...endingBudgets(by, limits).map(({ per }) => budgetPeriodAt(per, wallMs).endsAtMs - wallMs));
  }
}

/** Returns the budgets whose end a refused request may wait for. */
function endingBudgets(by: Refusal, limits: KeyLimits): readonly Budget[] {
  return budgetsOf(limits).filter(({ unit }) => by === "prompt" || by === limitOfUnit[unit]);
}

/** Returns what is used of a budget that is spent, and the end of its period; undefined for other refusals. */
export function spentPeriod(
  by: Refusal,
  limits: KeyLimits,
  { spent, wallMs }: { spent: Partial<Amounts>; wallMs: number },
) {
  const [budget] = by === "prompt" ? [] : endingBudgets(by, limits);
  return budget && { used: spent[budget.unit] ?? 0, endsAtMs: budgetPeriodAt(budget.per, wallMs).endsAtMs };
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
  return limits.concurrency !== undefined || limits.budget !== undefined || limits.spend !== undefined;
}

/** True if a reservation has a seat in any of its books. */
export function hasSeat({ held }: Pick<Reservation, "held">): boolean {
  return held.some(({ book }) => needsSeat(book));
}
