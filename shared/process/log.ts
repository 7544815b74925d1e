import { Writable } from "node:stream";
import { pino, type Logger } from "pino";

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

const keyText = /trunkline_(?:admin_)?[0-9A-Za-z]{6,}_[0-9A-Za-z]+/g;
const bearerText = /(bearer\s+)[^\s"\\]+/gi;

export function scrub(line: string): string {
  return line.replace(keyText, "[key]").replace(bearerText, "$1[key]");
}

export function createLog(options: { level: LogLevel; name: string; write?: (line: string) => void }): Log {
  const write = options.write ?? ((line: string) => void process.stderr.write(line));
  const scrubbed = new Writable({
    decodeStrings: false,
    write(line: string | Buffer, _encoding, done) {
      write(scrub(line.toString()));
      done();
    },
  });
  return pino({ level: options.level, name: options.name, base: { pid: process.pid, name: options.name } }, scrubbed);
}
