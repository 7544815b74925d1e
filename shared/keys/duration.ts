import { z } from "zod";

/** Milliseconds of each unit, the largest unit first. */
const unitsMs = new Map([
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
]);

export const durationMsMax = 3_650 * 86_400_000;

/** Parses a duration in whole units into milliseconds: `90d`, `12h`, `30m`, `45s`, `500ms`. Zero is allowed. */
export const durationOrNone = z
  .string()
  .regex(/^\d{1,15}(?:ms|[smhd])$/, "must be a whole number with a unit, such as 90d, 12h, 30m, 45s or 500ms")
  .transform(toMs)
  .refine((ms) => ms <= durationMsMax, `must be at most ${formatDuration(durationMsMax)}`);

/** A duration greater than zero. */
export const duration = durationOrNone.refine((ms) => ms > 0, "must be longer than nothing");

/** Formats a duration in the largest unit that represents it exactly. */
export function formatDuration(ms: number): string {
  for (const [unit, unitMs] of unitsMs) {
    if (ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  }
  return `${ms}ms`;
}

function toMs(text: string): number {
  return Number.parseInt(text, 10) * (unitsMs.get(text.replace(/^\d+/, "")) ?? Number.NaN);
}
