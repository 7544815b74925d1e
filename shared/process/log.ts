import { unescape } from "node:querystring";
import { pino, type Logger } from "pino";
import type { Clock } from "./clock.ts";

/**
 * The log of a process: one JSON object a line on standard error, or text where a person reads it. Standard output stays free for the output of a
 * command. Every line passes the scrubber last, wherever its text came from, so that rule 9 does not depend on the
 * callers.
 */
export type Log = Pick<Logger, "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "level"> & {
  child(bindings: Record<string, unknown>): Log;
};

export const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof logLevels)[number];

export const logFormats = ["json", "text"] as const;
export type LogFormat = (typeof logFormats)[number];

const keyText = /trunkline_(?:admin_|viewer_|link_|session_)?[0-9A-Za-z]{6,}_[0-9A-Za-z]+/g;
const bearerText = /(bearer\s+)[^\s"\\]+/gi;
/** The secret of a join line, behind the line's id. */
const joinText = /(#[0-9A-Za-z]{12})\.[\w-]{22}/g;
/** The private half of a machine's key, or of a key of NATS: of a user, an account or an operator. */
const seedText = /\bS[UAO][A-Z2-7]{56}\b/g;

/** Matches the beginning of a secret. Nearly no line has one, so most lines need only this scan. */
const suspect = /trunkline_|bearer\s|#[0-9A-Za-z]{12}\.|S[UAO][A-Z2-7]{56}/i;

/** A part of a URL. A key has none of the characters that separate two parts. */
const urlPart = /[^\s"\\/?&=#]+/g;
/** Bounds the rounds of percent-decoding: a URL may be encoded again on its way. */
const decodingsMax = 4;

/** Removes keys, bearer tokens, join lines' secrets and private keys of machines and NATS from a text. */
export function scrub(text: string): string {
  const plain = suspect.test(text) ? scrubPlain(text) : text;
  return plain.includes("%") ? plain.replace(urlPart, scrubEncoded) : plain;
}

function scrubPlain(text: string): string {
  const plain = text.replace(keyText, "[key]").replace(bearerText, "$1[key]");
  return plain.replace(joinText, "$1.[secret]").replace(seedText, "[key]");
}

/** Replaces a URL part that holds a percent-encoded key as a whole; no decoded text ever gets into a line. */
function scrubEncoded(part: string): string {
  let decoded = part;
  for (let times = 0; times < decodingsMax && decoded.includes("%"); times += 1) {
    decoded = unescape(decoded);
    if (suspect.test(decoded) && scrubPlain(decoded) !== decoded) return "[key]";
  }
  return part;
}

/** Makes a log. Its format is text on a terminal and JSON elsewhere, unless configured. */
export function createLog(options: {
  readonly level: LogLevel;
  readonly name: string;
  readonly format?: LogFormat | undefined;
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

interface Line {
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
  const { time, level, pid: _pid, name: _name, msg = "", err, ...fields } = JSON.parse(line) as Line;
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

/**
 * Replaces control characters in a text from clients or other hosts. Such a text can then neither end its line nor
 * control the terminal.
 */
export function onOneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, "?");
}

const repeatMs = 60_000;
const repeatedMax = 1_000;

/** Limits repeated log lines to one a minute for each key, so that a flood does not fill the log. */
export class LogThrottle {
  readonly #clock: Pick<Clock, "now">;
  readonly #loggedAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  isDue(key: string): boolean {
    const nowMs = this.#clock.now();
    const loggedAtMs = this.#loggedAtMs.get(key);
    if (loggedAtMs !== undefined && nowMs - loggedAtMs < repeatMs) return false;
    if (this.#loggedAtMs.size >= repeatedMax) this.#loggedAtMs.clear();
    this.#loggedAtMs.set(key, nowMs);
    return true;
  }
}
