/** Sums of usage, and their CSV. Pure. */
import { csvText } from "./csv.ts";
import { amountText } from "#shared/money/money.ts";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import {
  type CutPart,
  meansOf,
  sumUsage,
  type ToldFigures,
  totalUsage,
  usageFigures,
  type UsageFigures,
  type UsagePart,
} from "#shared/usage/sum-usage.ts";

export type AnyPart = UsagePart | CutPart;
export type ShownUsageRow = AnswerTo<"GET /usage">["data"][number];
/** The usage of one day, key, model, machine or the like. The part is null for requests without one. */
export interface UsageSum extends UsageFigures {
  readonly of: string | null;
  /** The mean wait for a first token. Null where none came. */
  readonly firstTokenMs: number | null;
}

/** Sums rows by a part of theirs: days in order, and keys and models by their tokens. */
export function sumBy(rows: readonly ShownUsageRow[], by: AnyPart): UsageSum[] {
  return sumUsage(rows, [by]).map((sum) => sumOf(sum.part[by] ?? null, [sum]));
}

export function sumOf(of: string | null, rows: readonly ToldFigures[]): UsageSum {
  const total = totalUsage(rows);
  return { ...total, of, firstTokenMs: meansOf(total).firstTokenMs };
}

const columns = ["day", "key", "model", ...usageFigures, "team", "person", "kind"] as const;

/** Returns usage as CSV, with a row for each day, key, model, team, person and kind of machine, or for those of a cut. */
export function csvOf(rows: readonly ShownUsageRow[], cut?: CutPart): string {
  const shown = cut === undefined ? columns : ([...columns, cut] as const);
  return csvText(
    shown,
    rows.map((row) => shown.map((column) => (column === "cost" ? amountText(row.cost ?? 0) : (row[column] ?? null)))),
  );
}
