import { Fault } from "#shared/fault/fault.ts";
import { usageKeptDays } from "#shared/usage/usage-row.ts";
import type { UsageQuery } from "./admin-schemas.ts";

const dayMs = 86_400_000;
const defaultDays = 30;

/** Returns the first and the last day of the requested range, both included. The default is the last 30 days. */
export function usageDays(
  asked: Pick<UsageQuery, "from" | "to">,
  nowMs: number,
): { readonly from: string; readonly to: string } {
  const to = asked.to ?? dayOf(nowMs);
  const toMs = Date.parse(to);
  const from = asked.from ?? dayOf(toMs - (defaultDays - 1) * dayMs);
  const days = (toMs - Date.parse(from)) / dayMs + 1;
  if (days < 1) throw wrongFrom("it is after the last day");
  if (days > usageKeptDays)
    throw wrongFrom(`there are more than ${usageKeptDays} days (usageKeptDays) to the last one`);
  return { from, to };
}

function wrongFrom(reason: string): Fault {
  return new Fault("invalid_value", { message: `Invalid value for 'from': ${reason}.`, param: "from" });
}

function dayOf(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 10);
}
