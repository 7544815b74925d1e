import { z } from "zod";

const count = z.int().nonnegative();

/** The counts of a usage row. */
const usageCounts = z.strictObject({
  requests: count,
  /** Number of these requests that failed. */
  failed: count,
  promptTokens: count,
  completionTokens: count,
  /** Number of requests with a first token, and the sum of their waits for it. */
  answered: count,
  firstTokenMs: count,
  durationMs: count,
});
export type UsageCounts = Readonly<z.infer<typeof usageCounts>>;
export type UsageMetric = keyof UsageCounts;
export const usageMetrics: readonly UsageMetric[] = usageCounts.keyof().options;

/** The usage of one key and one model in one day (UTC). */
export const usageRow = usageCounts.extend({
  day: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
  keyId: z.string(),
  /** Null for requests without a model that the key may use. */
  model: z.string().nullable(),
});
export type UsageRow = Readonly<z.infer<typeof usageRow>>;

/** Days that rows are kept. */
export const usageKeptDays = 400;

/** Reads the usage rows of a range of days, both ends included, sorted by day, key and model. */
export interface UsageRows {
  read(days: { readonly from: string; readonly to: string }): Promise<readonly UsageRow[]>;
}

/** Adds two rows of the same day, key and model. */
export function addUsage(one: UsageRow, other: UsageRow): UsageRow {
  const sum = { ...one };
  for (const metric of usageMetrics) sum[metric] += other[metric];
  return sum;
}

/** Compares rows by day, key and model; rows without a model come first. */
export function compareUsage(one: UsageRow, other: UsageRow): number {
  return (
    compareText(one.day, other.day) ||
    compareText(one.keyId, other.keyId) ||
    compareText(one.model ?? "", other.model ?? "")
  );
}

/** Compares by UTF-16 code units, so that the order is the same on every host. */
function compareText(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
