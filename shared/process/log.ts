import { unescape } from "node:querystring";
import { pino, type Logger } from "pino";
import type { Clock } from "./clock.ts";
import { logText } from "./log-text.ts";

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

const keyText = /trunkline_(?:admin_|viewer_)?[0-9A-Za-z]{6,}_[0-9A-Za-z]+/g;
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
}): Log {
  const { stderr } = process;
  const { level, name, write = (line) => void stderr.write(line) } = options;
  const isTerminal = options.write === undefined && stderr.isTTY;
  const { format = isTerminal ? "text" : "json" } = options;
  const coloured = isTerminal && stderr.hasColors();
  const written = format === "json" ? (line: string) => line : (line: string) => logText(line, { coloured });
  return pino({ level, name, base: { pid: process.pid, name } }, { write: (line) => write(scrub(written(line))) });
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
