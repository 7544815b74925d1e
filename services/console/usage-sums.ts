/** Sums of usage, and their CSV. Pure. */
import { csvText } from "./csv.ts";
import { amountText } from "#shared/money/money.ts";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import {
  meansOf,
  sumUsage,
  type ToldFigures,
  totalUsage,
  usageFigures,
  type UsageFigures,
  type UsagePart,
} from "#shared/usage/sum-usage.ts";

export type ShownUsageRow = AnswerTo<"GET /usage">["data"][number];
/** The usage of one day, key, model or machine. */
export interface UsageSum extends Pick<UsageFigures, "requests" | "failed" | "prompt_tokens" | "completion_tokens"> {
  readonly of: string | null;
  /** The mean wait for a first token. Null where none came. */
  readonly firstTokenMs: number | null;
}

/** Sums rows by a part of theirs: days in order, and keys and models by their tokens. */
export function sumBy(rows: readonly ShownUsageRow[], by: UsagePart): UsageSum[] {
  return sumUsage(rows, [by]).map((sum) => sumOf(sum.part[by] ?? null, [sum]));
}

export function sumOf(of: string | null, rows: readonly ToldFigures[]): UsageSum {
  const total = totalUsage(rows);
  return { ...total, of, firstTokenMs: meansOf(total).firstTokenMs };
}

/** Returns the sums of machines. Usage names no machine: these come from the history. */
export function sumMachines({ data }: AnswerTo<"GET /history">): UsageSum[] {
  return data.map(({ of, total }) => ({
    ...total,
    of: of ?? "others",
    firstTokenMs: total.first_token_ms?.p50 ?? null,
  }));
}

const columns = ["day", "key", "model", ...usageFigures, "team", "person", "kind"] as const;

/** Returns usage as CSV, with a row for each day, key, model, team, person and kind of machine. */
export function csvOf(rows: readonly ShownUsageRow[]): string {
  return csvText(
    columns,
    rows.map((row) => columns.map((column) => (column === "cost" ? amountText(row.cost ?? 0) : (row[column] ?? null)))),
  );
}
