import { pino, type Logger } from "pino";
import { renderLinesAtOnce } from "./log-line.ts";

/**
 * The log of a process: one JSON object a line, on standard error, so that standard output stays free for what a
 * command prints. Every line passes the scrubber last, whatever put the text there: rule 9 does not depend on
 * anybody's care.
 */
export type Log = Pick<Logger, "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "level"> & {
  child(bindings: Record<string, unknown>): Log;
};

export const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof logLevels)[number];

/** So much of a log waits for the end of a turn at most. */
const gatheredCharactersMax = 64 * 1024;

const keyText = /trunkline_(?:admin_)?[0-9A-Za-z]{6,}_[0-9A-Za-z]+/g;
const bearerText = /(bearer\s+)[^\s"\\]+/gi;

/** What either may begin with: nearly no line has any of it, and is looked through once. */
const suspect = /trunkline_|bearer\s/i;

/** One line or several; nothing of what it looks for goes on in the next. */
export function scrub(lines: string): string {
  if (!suspect.test(lines)) return lines;
  return lines.replace(keyText, "[key]").replace(bearerText, "$1[key]");
}

/** One for the process, so that lines of several logs keep their order. */
const standardError = gatherLines((lines) => void process.stderr.write(scrub(lines)));

export function createLog(options: { level: LogLevel; name: string; write?: (line: string) => void }): Log {
  const { level, name, write } = options;
  const scrubbed = { write: write === undefined ? standardError : (line: string) => write(scrub(line)) };
  return renderLinesAtOnce(pino({ level, name, base: { pid: process.pid, name } }, scrubbed));
}

/**
 * Writes what is said in one turn of the event loop at its end: a busy process has a line for every request, and each
 * write waits for the kernel. What was said is written too when the process ends, however it does so by itself.
 */
function gatherLines(write: (lines: string) => void): (line: string) => void {
  let gathered = "";
  const flush = (): void => {
    const lines = gathered;
    gathered = "";
    if (lines !== "") write(lines);
  };
  process.once("exit", flush);
  return (line) => {
    if (gathered === "") setImmediate(flush);
    gathered += line;
    if (gathered.length > gatheredCharactersMax) flush();
  };
}
