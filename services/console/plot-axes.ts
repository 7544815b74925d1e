/** The axes of a chart: distinct round numbers, and round times of the viewer's zone. Pure. */
import { dayMs } from "#shared/process/clock.ts";

const hourMs = 3_600_000;
const decimalSteps = Array.from(
  { length: 46 },
  (_, index) => ([1, 2, 5][index % 3] ?? 1) * 10 ** Math.floor(index / 3),
);
/** Steps of waits, in milliseconds. */
const waitSteps = [...decimalSteps.slice(0, 13), 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5];
const ticksMax = 5;

/** Returns the ticks from zero to above the highest value, each with a text of its own. */
export function valueTicks(highest: number, text: (value: number) => string, isWait = false): number[] {
  const top = Math.max(highest * 1.05, 1);
  for (const step of isWait ? waitSteps : decimalSteps) {
    const ticks = Array.from({ length: Math.min(Math.ceil(top / step), ticksMax + 1) + 1 }, (_, index) => index * step);
    if (ticks.length - 1 <= ticksMax && new Set(ticks.map(text)).size === ticks.length) return ticks;
  }
  return [0, top];
}

const timeSteps = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440, 2_880, 7_200, 14_400, 43_200].map(
  (each) => each * 60_000,
);

/** Returns round times of the viewer's zone with their texts: the day where one begins, else hours and minutes. */
export function timeTicks(
  fromMs: number,
  untilMs: number,
  most: number,
): readonly (readonly [at: number, text: string])[] {
  const step = timeSteps.find((each) => (untilMs - fromMs) / each <= most) ?? untilMs - fromMs;
  const aheadMs = -new Date(fromMs).getTimezoneOffset() * 60_000;
  const ticks: [number, string][] = [];
  for (let at = Math.ceil((fromMs + aheadMs) / step) * step - aheadMs; at < untilMs; at += step) {
    // A day of 23 or 25 hours moves the ticks of days behind it by one hour.
    const time = new Date(step >= dayMs ? at + hourMs : at);
    const isDay = step >= dayMs || (time.getHours() === 0 && time.getMinutes() === 0);
    ticks.push([at, isDay ? dayText.format(time) : clockText.format(time)]);
  }
  return ticks;
}

const dayText = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });
const clockText = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const bothText = new Intl.DateTimeFormat("en", {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});

/** Returns a time with its day: `Nov 29, 14:05`. */
export function timeText(at: number): string {
  return bothText.format(at);
}

/** Returns the words of a step of time: `Nov 29, 14:05 to 14:10`. */
export function stepText(at: number, stepMs: number): string {
  const [from, until] = [new Date(at), new Date(at + stepMs)];
  const isSameDay = from.toDateString() === until.toDateString();
  return `${bothText.format(from)} to ${(isSameDay ? clockText : bothText).format(until)}`;
}

/** Returns the viewer's zone: `Europe/Berlin`. */
export function zoneName(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
