import type { Allowance } from "./limits.ts";

/**
 * A limit per minute, as a bucket (GCRA, counted in units of the limit and not in time). Every request fills the
 * bucket, which drains evenly, a whole limit in a minute. A limit of N admits N at once, and then one each N-th of a
 * minute. Counts in units are exact for any size of limit and stay correct when the limit changes. They do not depend
 * on a clock that was set back.
 */
export interface Rate {
  readonly limit: number;
  /** The highest level of the bucket. */
  readonly usedMax: number;
}

/** The level of a bucket at a moment. */
export interface Used {
  readonly units: number;
  readonly atMs: number;
}

export const windowMs = 60_000;

/** The most minutes over which an answer that was longer than its reservation is paid off. */
export const debtWindowsMax = 10;

/** The largest rounding error of draining. */
export const roundingUnits = 1e-6;

export const unused: Used = { units: 0, atMs: 0 };

export function requestRate(limit: number): Rate {
  return { limit, usedMax: limit };
}

export function tokenRate(limit: number): Rate {
  return { limit, usedMax: limit * debtWindowsMax };
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
