import type { Allowance } from "./limits.ts";

/**
 * Limits by the minute, as a bucket that every request fills and that drains evenly, a whole limit in a minute (GCRA,
 * counted in what is limited and not in time). A limit of N lets N through at once, and then one each N-th of a minute.
 * Counted in units, numbers are exact however large the limit is, stay true when the limit changes, and owe nothing to
 * a clock that was set back.
 */
export interface Rate {
  readonly limit: number;
  /** Nothing fills the bucket beyond this. */
  readonly usedMax: number;
}

/** What was in the bucket at a moment. */
export interface Used {
  readonly units: number;
  readonly atMs: number;
}

export const windowMs = 60_000;

/** An answer that was longer than its reservation is paid off in later minutes, but never in more than these. */
export const debtWindowsMax = 10;

/** What draining may be off by rounding. */
export const roundingUnits = 1e-6;

export const unused: Used = { units: 0, atMs: 0 };

export function requestRate(limit: number): Rate {
  return { limit, usedMax: limit };
}

export function tokenRate(limit: number): Rate {
  return { limit, usedMax: limit * debtWindowsMax };
}

/** A request that costs more than the whole limit may pass when nothing else was used; what it really used is charged. */
export function costWithin(rate: Rate, cost: number): number {
  return Math.min(cost, rate.limit);
}

export function usedAt(used: Used, rate: Rate, nowMs: number): Used {
  const elapsedMs = Math.max(0, nowMs - used.atMs);
  const left = used.units - (elapsedMs * rate.limit) / windowMs;
  return { units: Math.min(Math.max(0, left), rate.usedMax), atMs: nowMs };
}

/** In what time a cost may be taken; zero means now. */
export function waitMsFor(cost: number, units: number, rate: Rate): number {
  return msToDrain(units + costWithin(rate, cost) - rate.limit, rate);
}

/** Takes a cost whatever there is left; a negative one is given back. */
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
