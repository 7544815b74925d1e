import { z } from "zod";

const count = z.int().nonnegative();

/** What is counted of requests. */
const usageCounts = z.strictObject({
  requests: count,
  /** Of these, how many did not end well. */
  failed: count,
  promptTokens: count,
  completionTokens: count,
  /** How many of them had a first token, and how long these were waited for in all. */
  answered: count,
  firstTokenMs: count,
  durationMs: count,
});
export type UsageCounts = Readonly<z.infer<typeof usageCounts>>;
export type UsageMetric = keyof UsageCounts;
export const usageMetrics: readonly UsageMetric[] = usageCounts.keyof().options;

/** What one key used of one model in one day (UTC). */
export const usageRow = usageCounts.extend({
  day: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
  keyId: z.string(),
  /** Null for requests that named no model that this key may use. */
  model: z.string().nullable(),
});
export type UsageRow = Readonly<z.infer<typeof usageRow>>;

/** For how many days rows are kept. */
export const usageKeptDays = 400;

/** Reads what was counted, from one day to another, both included; sorted by day, key and model. */
export interface UsageRows {
  read(days: { readonly from: string; readonly to: string }): Promise<readonly UsageRow[]>;
}

/** Two rows of one day, key and model as one. */
export function addUsage(one: UsageRow, other: UsageRow): UsageRow {
  const sum = { ...one };
  for (const metric of usageMetrics) sum[metric] += other[metric];
  return sum;
}

/** By day, key and model; rows of no model come first. */
export function compareUsage(one: UsageRow, other: UsageRow): number {
  return (
    compareText(one.day, other.day) ||
    compareText(one.keyId, other.keyId) ||
    compareText(one.model ?? "", other.model ?? "")
  );
}

/** By code units, so that the order is the same on every host. */
function compareText(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
