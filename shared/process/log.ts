import { type LevelWithSilent, type Logger, pino } from "pino";
import type { Clock } from "./clock.ts";
import { onOneLine, scrub } from "./clean-text.ts";
import { perMinute, RateBuckets } from "./rate-buckets.ts";

/**
 * The log of a process: one JSON object a line on standard error, or text where a person reads it. Standard output stays free for the output of a
 * command. Every line passes the scrubber last, wherever its text came from, so that rule 9 does not depend on the
 * callers.
 */
export type Log = Pick<Logger, "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "level"> & {
  child(bindings: Record<string, unknown>): Log;
};

/** Makes a log. Its format is text on a terminal and JSON elsewhere, unless configured. */
export function createLog(options: {
  readonly level: LevelWithSilent;
  readonly name: string;
  readonly format?: "json" | "text" | undefined;
  readonly write?: (line: string) => void;
  /** Formats a line for a terminal, in place of `logText`. */
  readonly text?: typeof logText;
}): Log {
  const { stderr } = process;
  const { level, name, text = logText, write = (line) => void stderr.write(line) } = options;
  const isTerminal = options.write === undefined && stderr.isTTY;
  const { format = isTerminal ? "text" : "json" } = options;
  const coloured = isTerminal && stderr.hasColors();
  const written = format === "json" ? (line: string) => line : (line: string) => text(line, { coloured });
  return pino({ level, name, base: { pid: process.pid, name } }, { write: (line) => write(scrub(written(line))) });
}

const levels: Readonly<Record<number, readonly [word: string, colour: string]>> = {
  10: ["TRACE", "\u001b[2m"],
  20: ["DEBUG", "\u001b[2m"],
  30: ["INFO ", "\u001b[32m"],
  40: ["WARN ", "\u001b[33m"],
  50: ["ERROR", "\u001b[31m"],
  60: ["FATAL", "\u001b[31m"],
};
const noColour = "\u001b[0m";

/** Matches a text that needs no quotes. */
const word = /^[^\s"=]+$/;

interface LogLine {
  readonly time: number;
  readonly level: number;
  readonly msg?: string;
  readonly [name: string]: unknown;
}

/**
 * Formats a log line, which is one JSON object, for a terminal: the local time, the level, the message, and the other
 * fields as `name=value`.
 */
export function logText(line: string, { coloured }: { readonly coloured: boolean }): string {
  const { time, level, pid: _pid, name: _name, msg = "", err, ...fields } = JSON.parse(line) as LogLine;
  const [text, colour] = levels[level] ?? [String(level), ""];
  const shown = coloured ? `${colour}${text}${noColour}` : text;
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${valueText(value)}`);
  const words = [msg, ...pairs].filter((each) => each !== "").map(onOneLine);
  const clockTime = `${timeText(time)}.${String(time % 1_000).padStart(3, "0")}`;
  return `${clockTime} ${shown} ${words.join(" ")}\n${errorText(err)}`;
}

/** Returns the local time to the second. */
export function timeText(ms: number): string {
  return new Date(ms).toTimeString().slice(0, 8);
}

function valueText(value: unknown): string {
  return typeof value === "string" && word.test(value) ? value : JSON.stringify(value);
}

/** Returns the stack of an error, on lines of their own, or what there is instead of one. */
function errorText(err: unknown): string {
  if (err === undefined) return "";
  const stack = typeof err === "object" && err !== null && "stack" in err ? String(err.stack) : valueText(err);
  return stack
    .split("\n")
    .map((each) => `  ${onOneLine(each.trimEnd())}\n`)
    .join("");
}

const repeatedMax = 1_000;

/** Limits repeated log lines to one a minute for each key, so that a flood does not fill the log. */
export class LogThrottle {
  readonly #rates: RateBuckets;

  constructor(clock: Pick<Clock, "now">) {
    this.#rates = new RateBuckets(clock, { ...perMinute(1), max: repeatedMax });
  }

  isDue(key: string): boolean {
    return this.#rates.take(key) === 0;
  }
}
