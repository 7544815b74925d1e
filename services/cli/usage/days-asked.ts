import { usageKeptDays } from "#shared/usage/usage-row.ts";

const dayMs = 86_400_000;

export interface Days {
  readonly from: string;
  readonly to: string;
}

/**
 * Returns the first and the last requested day (UTC), both included, or the error in them. Without a first day, the
 * range is `days` long.
 */
export function daysAsked(
  asked: { readonly from?: string; readonly to?: string; readonly days: number },
  nowMs: number,
): Days | { readonly wrong: string } {
  const to = asked.to ?? dayOf(nowMs);
  const from = asked.from ?? dayOf(Date.parse(to) - (asked.days - 1) * dayMs);
  const days = (Date.parse(to) - Date.parse(from)) / dayMs + 1;
  if (days < 1) return { wrong: `${from}, the first day, is after ${to}, the last` };
  if (days > usageKeptDays) return { wrong: `from ${from} to ${to} there are more than ${usageKeptDays} days` };
  return { from, to };
}

function dayOf(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 10);
}
