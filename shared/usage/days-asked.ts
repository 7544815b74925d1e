import { dayMs, dayOf } from "../process/clock.ts";

/** A range of days (UTC), both ends included. */
export interface Days {
  readonly from: string;
  readonly to: string;
}

/**
 * Returns the range of days that is asked for, and how many there are in it. Without a last day it ends today, and
 * without a first one it is `days` long.
 */
export function daysAsked(
  asked: { readonly from?: string | undefined; readonly to?: string | undefined; readonly days: number },
  nowMs: number,
): Days & { readonly count: number } {
  const to = asked.to ?? dayOf(nowMs);
  const from = asked.from ?? dayOf(Date.parse(to) - (asked.days - 1) * dayMs);
  return { from, to, count: (Date.parse(to) - Date.parse(from)) / dayMs + 1 };
}
