/** Counts, durations and distances of time as people write and read them. The browser loads this file. */
const sizes = new Map([
  ["M", 1_000_000],
  ["k", 1_000],
  ["", 1],
]);

export const countPattern = /^\d{1,15}[kM]?$/;

/** Formats a whole number exactly, with a suffix for large ones: `60`, `100k`, `2M`. */
export function countText(count: number): string {
  for (const [suffix, size] of sizes) {
    if (count >= size && count % size === 0) return `${count / size}${suffix}`;
  }
  return String(count);
}

/** Reads the output of `countText`, and plain digits. Returns NaN for other texts. */
export function readCount(text: string): number {
  if (!countPattern.test(text)) return Number.NaN;
  return Number.parseInt(text, 10) * (sizes.get(text.replace(/^\d+/, "")) ?? Number.NaN);
}

/** Milliseconds of each unit, the largest unit first. */
const unitsMs = new Map([
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
]);

export const durationPattern = /^\d{1,15}(?:ms|[smhd])$/;

/** Reads a duration in whole units as milliseconds: `90d`, `12h`, `30m`, `45s`, `500ms`. Returns NaN for other texts. */
export function readDuration(text: string): number {
  if (!durationPattern.test(text)) return Number.NaN;
  return Number.parseInt(text, 10) * (unitsMs.get(text.replace(/^\d+/, "")) ?? Number.NaN);
}

/** Formats a duration in the largest unit that represents it exactly. */
export function formatDuration(ms: number): string {
  for (const [unit, unitMs] of unitsMs) {
    if (ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  }
  return `${ms}ms`;
}

const timeUnits = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
] as const;

/** Returns the largest unit of which a duration has at least two. */
export function unitOf(ms: number): (typeof timeUnits)[number] {
  return timeUnits.find(([, unitMs]) => ms >= 2 * unitMs) ?? ["second", 1_000];
}

const relative = new Intl.RelativeTimeFormat("en");

/** Formats the distance of a time from now: `in 90 days`, `3 hours ago`. */
export function fromNow(atMs: number, nowMs: number): string {
  const [unit, unitMs] = unitOf(Math.abs(atMs - nowMs));
  return relative.format(Math.round((atMs - nowMs) / unitMs), unit);
}
