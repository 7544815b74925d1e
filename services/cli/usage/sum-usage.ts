import { usageMetrics, type UsageCounts, type UsageRow } from "#shared/usage/usage-row.ts";

/** The dimensions by which usage can be grouped. */
export const usageParts = ["key", "model", "day"] as const;
export type UsagePart = (typeof usageParts)[number];

/** The usage of one group. A dimension that was not requested is summed over all its values. */
export interface UsageSum {
  readonly part: { readonly key?: string; readonly model?: string | null; readonly day?: string };
  readonly counts: UsageCounts;
}

/** Sums usage by the requested dimensions. Sorts by day, then by tokens with the largest first. */
export function sumUsage(rows: readonly UsageRow[], by: readonly UsagePart[]): readonly UsageSum[] {
  const sums = new Map<string, UsageSum>();
  for (const row of rows) {
    const part = partOf(row, by);
    const place = JSON.stringify(part);
    sums.set(place, { part, counts: add(sums.get(place)?.counts ?? nothing, row) });
  }
  return [...sums.values()].sort(compareSums);
}

export function totalUsage(rows: readonly UsageRow[]): UsageCounts {
  return rows.reduce(add, nothing);
}

/** The mean times. Null when there is no request to take a mean of. */
export interface UsageMeans {
  readonly firstTokenMs: number | null;
  readonly durationMs: number | null;
}

export function meansOf({ requests, answered, firstTokenMs, durationMs }: UsageCounts): UsageMeans {
  return {
    firstTokenMs: answered === 0 ? null : firstTokenMs / answered,
    durationMs: requests === 0 ? null : durationMs / requests,
  };
}

const nothing: UsageCounts = {
  requests: 0,
  failed: 0,
  promptTokens: 0,
  completionTokens: 0,
  answered: 0,
  firstTokenMs: 0,
  durationMs: 0,
};

function add(one: UsageCounts, other: UsageCounts): UsageCounts {
  const sum = { ...nothing };
  for (const metric of usageMetrics) sum[metric] = one[metric] + other[metric];
  return sum;
}

function partOf({ keyId, model, day }: UsageRow, by: readonly UsagePart[]): UsageSum["part"] {
  return {
    ...(by.includes("key") ? { key: keyId } : {}),
    ...(by.includes("model") ? { model } : {}),
    ...(by.includes("day") ? { day } : {}),
  };
}

function compareSums(one: UsageSum, other: UsageSum): number {
  return (
    compareText(one.part.day, other.part.day) ||
    tokensOf(other.counts) - tokensOf(one.counts) ||
    other.counts.requests - one.counts.requests ||
    compareText(one.part.key, other.part.key) ||
    compareText(one.part.model, other.part.model)
  );
}

function tokensOf({ promptTokens, completionTokens }: UsageCounts): number {
  return promptTokens + completionTokens;
}

/** Compares by code units, so that the order is the same on every host. */
function compareText(one: string | null = "", other: string | null = ""): number {
  const [first, second] = [one ?? "", other ?? ""];
  if (first === second) return 0;
  return first < second ? -1 : 1;
}
