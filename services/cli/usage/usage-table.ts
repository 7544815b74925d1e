import type { UsageCounts } from "#shared/usage/usage-row.ts";
import { alignedTable } from "../text/aligned-table.ts";
import { cutText } from "../text/cut-text.ts";
import { meansOf, type UsagePart, type UsageSum } from "./sum-usage.ts";

interface Column {
  readonly heading: string;
  readonly cell: (sum: UsageSum) => string;
}

const textWidthMax = 40;
const numbers = ["requests", "failed", "tokens in", "tokens out", "first token", "duration"] as const;

/**
 * Formats usage as a table: a line for each sum, and a line with the total. The columns on the left are in the order of
 * `by`.
 */
export function usageTable(usage: {
  readonly sums: readonly UsageSum[];
  readonly total: UsageCounts;
  readonly by: readonly UsagePart[];
  readonly nameOf: (keyId: string) => string | undefined;
}): string {
  const { sums, total, by, nameOf } = usage;
  const columnsOf: Record<UsagePart, readonly Column[]> = {
    key: [
      { heading: "key", cell: ({ part }) => part.key ?? "" },
      { heading: "name", cell: ({ part }) => (part.key === undefined ? "" : (nameOf(part.key) ?? "-")) },
    ],
    model: [{ heading: "model", cell: ({ part }) => part.model ?? "-" }],
    day: [{ heading: "day", cell: ({ part }) => part.day ?? "" }],
  };
  const columns = by.flatMap((part) => columnsOf[part]);
  return alignedTable(
    [...columns.map(({ heading }) => heading), ...numbers],
    [
      ...sums.map((sum) => [...columns.map(({ cell }) => cutText(cell(sum), textWidthMax)), ...cellsOf(sum.counts)]),
      [...columns.map((_, at) => (at === 0 ? "total" : "")), ...cellsOf(total)],
    ],
    { right: numbers },
  );
}

const grouped = new Intl.NumberFormat("en-US");

function cellsOf(counts: UsageCounts): string[] {
  const { firstTokenMs, durationMs } = meansOf(counts);
  return [
    grouped.format(counts.requests),
    grouped.format(counts.failed),
    grouped.format(counts.promptTokens),
    grouped.format(counts.completionTokens),
    seconds(firstTokenMs),
    seconds(durationMs),
  ];
}

function seconds(ms: number | null): string {
  return ms === null ? "-" : `${(ms / 1_000).toFixed(2)} s`;
}
