const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
] as const;

const relative = new Intl.RelativeTimeFormat("en");

/**
 * Formats the distance of a time from now, in the largest unit that gives at least two: `in 90 days`, `3 hours ago`.
 */
export function fromNow(atMs: number, nowMs: number): string {
  const [unit, unitMs] = units.find(([, each]) => Math.abs(atMs - nowMs) >= 2 * each) ?? ["second", 1_000];
  return relative.format(Math.round((atMs - nowMs) / unitMs), unit);
}
