import { unescape } from "node:querystring";
import { pino, type Logger } from "pino";
import type { Clock } from "./clock.ts";

/**
 * The log of a process: one JSON object a line on standard error. Standard output stays free for the output of a
 * command. Every line passes the scrubber last, wherever its text came from, so that rule 9 does not depend on the
 * callers.
 */
export type Log = Pick<Logger, "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "level"> & {
  child(bindings: Record<string, unknown>): Log;
};

export const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof logLevels)[number];

const keyText = /trunkline_(?:admin_|viewer_)?[0-9A-Za-z]{6,}_[0-9A-Za-z]+/g;
const bearerText = /(bearer\s+)[^\s"\\]+/gi;

/** Matches the beginning of a key or a bearer token. Nearly no line has one, so most lines need only this scan. */
const suspect = /trunkline_|bearer\s/i;

/** A part of a URL. A key has none of the characters that separate two parts. */
const urlPart = /[^\s"\\/?&=#]+/g;
/** Bounds the rounds of percent-decoding: a URL may be encoded again on its way. */
const decodingsMax = 4;

/** Removes keys and bearer tokens from a text. */
export function scrub(text: string): string {
  const plain = suspect.test(text) ? scrubPlain(text) : text;
  return plain.includes("%") ? plain.replace(urlPart, scrubEncoded) : plain;
}

function scrubPlain(text: string): string {
  return text.replace(keyText, "[key]").replace(bearerText, "$1[key]");
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

export function createLog(options: { level: LogLevel; name: string; write?: (line: string) => void }): Log {
  const { level, name, write = (line) => void process.stderr.write(line) } = options;
  return pino({ level, name, base: { pid: process.pid, name } }, { write: (line) => write(scrub(line)) });
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
