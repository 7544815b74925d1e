/** The history of requests as charts draw it. Pure. */
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import type { HistorySeries, HistorySums } from "#shared/history/read-history.ts";

export type HistoryAnswer = AnswerTo<"GET /history">;

/** Returns when each step begins, in milliseconds. */
export function timesOf({ since, until, step_seconds: seconds }: HistoryAnswer): number[] {
  const times: number[] = [];
  for (let at = Date.parse(since); at < Date.parse(until); at += seconds * 1_000) times.push(at);
  return times;
}

/**
 * Returns a figure of each step. A step without a request has `silent`; one from before the site stored sums has null.
 */
export function valuesOf(
  history: HistoryAnswer,
  { steps }: HistorySeries,
  figure: (sums: HistorySums) => number | null | undefined,
  silent: 0 | null = 0,
): (number | null)[] {
  const byTime = new Map(steps.map((step) => [Date.parse(step.at), step]));
  const knownMs = history.known_since === null ? Infinity : Date.parse(history.known_since);
  return timesOf(history).map((at) => {
    const step = byTime.get(at);
    if (step !== undefined) return figure(step) ?? null;
    return at + history.step_seconds * 1_000 <= knownMs ? null : silent;
  });
}
