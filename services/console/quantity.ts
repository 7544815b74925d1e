/** Numbers, times, sizes and names as people read them. Pure. */
import { dayMs, dayOf } from "#shared/process/clock.ts";

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function numberText(value: number): string {
  return whole.format(Math.round(value * 10) / 10);
}

/** Returns a number in few characters: 1.2K, 3.4M. */
export function shortNumber(value: number): string {
  return value < 10_000 ? numberText(value) : short.format(value);
}

/** Returns a wait in the unit that fits: 12 ms, 1.4 s, 3 min. */
export function msText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return spanText(ms);
}

/** Returns a span of time in its largest unit: 45 s, 12 min, 3 h, 9 d. */
export function spanText(ms: number): string {
  const units = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
  ] as const;
  for (const [unitMs, unit] of units) if (ms >= unitMs) return `${Math.floor(ms / unitMs)} ${unit}`;
  return `${Math.max(0, Math.round(ms / 1_000))} s`;
}

/** Returns a size of megabytes: 640 MB, 18.6 GB. */
export function sizeText(mb: number): string {
  if (mb === 0) return "–";
  return mb < 1_000 ? `${mb} MB` : `${(mb / 1_000).toFixed(1)} GB`;
}

export function bytesText(bytes: number): string {
  return sizeText(Math.round(bytes / 1_000_000));
}

/** Returns a window of a model: 131,072 is 128K, as people name it. */
export function windowText(tokens: number): string {
  return tokens >= 1_024 && tokens % 1_024 === 0 ? `${tokens / 1_024}K` : numberText(tokens);
}

const nameEnd = 12;

/** Returns the start of a name and its last characters. A table cuts a long start short, so that the end stays in sight. */
export function nameParts(name: string): readonly [start: string, end: string] {
  const characters = Array.from(name);
  if (characters.length <= 2 * nameEnd) return [name, ""];
  return [characters.slice(0, -nameEnd).join(""), characters.slice(-nameEnd).join("")];
}

const clockText = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
const dateText = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

/** Returns a time in the viewer's zone. Today's has no date. */
export function localTime(at: string, now = new Date()): string {
  const time = new Date(at);
  const clock = clockText.format(time);
  return time.toDateString() === now.toDateString() ? clock : `${dateText.format(time)}, ${clock}`;
}

/** Tells what becomes of running answers. Their number may not be known. */
export function endingText(running: number | undefined): string {
  if (running === 0) return "No running answer ends.";
  if (running === 1) return "1 running answer ends.";
  return running === undefined ? "Running answers end." : `${running} running answers end.`;
}

const days = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** Returns how many days (UTC) ago a day was: today, yesterday, 12 days ago. */
export function daysAgo(day: string, nowMs: number): string {
  return days.format(Math.round((Date.parse(day) - Date.parse(dayOf(nowMs))) / dayMs), "day");
}
