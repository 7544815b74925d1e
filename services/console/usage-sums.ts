/** Sums of usage, and their CSV. Pure. */
import { dayMs, dayOf } from "#shared/process/clock.ts";
import type { Activity } from "#shared/requests/activity.ts";
import type { AnswerTo } from "#shared/admin/admin-call.ts";

export type ShownUsageRow = AnswerTo<"GET /usage">["data"][number];
export const usageParts = ["day", "key", "model", "machine"] as const;
export type UsagePart = (typeof usageParts)[number];

/** The usage of one day, key or model. */
export interface UsageSum {
  readonly of: string | null;
  readonly requests: number;
  readonly failed: number;
  readonly prompt: number;
  readonly completion: number;
  /** The mean wait for a first token. Null where none came. */
  readonly firstTokenMs: number | null;
}

/** Sums rows by a part of theirs: days in order, and keys and models by their tokens. */
export function sumUsage(rows: readonly ShownUsageRow[], by: Exclude<UsagePart, "machine">): UsageSum[] {
  const sums = [...Map.groupBy(rows, (row) => row[by])].map(([of, own]) => sumOf(of, own));
  return by === "day"
    ? sums.toSorted((one, other) => ((one.of ?? "") < (other.of ?? "") ? -1 : 1))
    : sums.toSorted((one, other) => other.prompt + other.completion - one.prompt - one.completion);
}

export function sumOf(of: string | null, rows: readonly ShownUsageRow[]): UsageSum {
  const add = (field: "requests" | "failed" | "prompt_tokens" | "completion_tokens" | "answered" | "first_token_ms") =>
    rows.reduce((sum, row) => sum + row[field], 0);
  const answered = add("answered");
  return {
    of,
    requests: add("requests"),
    failed: add("failed"),
    prompt: add("prompt_tokens"),
    completion: add("completion_tokens"),
    firstTokenMs: answered === 0 ? null : add("first_token_ms") / answered,
  };
}

/** Returns the sums of machines. Usage names no machine: these come from the records of requests. */
export function sumMachines({ machines }: Activity): UsageSum[] {
  return machines.map(({ machine: of, requests, failed, prompt_tokens, completion_tokens, first_token_ms }) => ({
    of,
    requests,
    failed,
    prompt: prompt_tokens,
    completion: completion_tokens,
    firstTokenMs: first_token_ms,
  }));
}

/** Returns every day of a range, so that a plot has a place for those without usage. */
export function daysOf(from: string, to: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += dayMs) days.push(dayOf(at));
  return days;
}

const columns = [
  "day",
  "key",
  "model",
  "requests",
  "failed",
  "prompt_tokens",
  "completion_tokens",
  "answered",
  "first_token_ms",
  "duration_ms",
] as const;

/** Returns usage as CSV, with a row for each day, key and model. */
export function csvOf(rows: readonly ShownUsageRow[]): string {
  const lines = rows.map((row) => columns.map((column) => csvField(row[column])).join(","));
  return `${[columns.join(","), ...lines].join("\r\n")}\r\n`;
}

/** Returns a field in quotes where it needs them. A spreadsheet takes a text that begins with = or + for a formula. */
function csvField(value: string | number | null): string {
  const text = String(value ?? "");
  const harmless = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
