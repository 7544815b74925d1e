import { closeSync, fstatSync, mkdirSync, openSync, readSync, renameSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { reasonOf } from "#shared/fault/fault.ts";
import { type Clock, sleep } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { logText } from "#shared/process/log.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { type Output } from "../terminal/command-line.ts";

/** Size at which a log file is put aside as `<file>.1`, in place of the one before. */
const bytesMax = 10 * 1024 * 1024;

/** A log in a file, where no service manager keeps one. It takes twice `bytesMax` at most. */
export class LogFile implements Output {
  readonly #path: string;
  readonly #bytesMax: number;
  #file: number;
  #bytes: number;

  constructor(path: string, options: { readonly bytesMax?: number } = {}) {
    this.#path = path;
    this.#bytesMax = options.bytesMax ?? bytesMax;
    try {
      mkdirSync(dirname(path), { recursive: true });
      this.#file = openSync(path, "a", 0o600);
    } catch (error) {
      throw new StartFailure(exitCodes.cannotCreate, `The log file ${path} cannot be written (${reasonOf(error)}).`);
    }
    this.#bytes = fstatSync(this.#file).size;
  }

  write(text: string): boolean {
    if (this.#bytes >= this.#bytesMax) this.#turnOver();
    this.#bytes += writeSync(this.#file, text);
    return true;
  }

  #turnOver(): void {
    closeSync(this.#file);
    renameSync(this.#path, `${this.#path}.1`);
    this.#file = openSync(this.#path, "a", 0o600);
    this.#bytes = 0;
  }
}

/** Bytes from the end of a log in which its last lines are looked for. */
const tailBytesMax = 1024 * 1024;
const lookMs = 250;

/** Shows the last lines of a log file, and with `follow` what comes after them, until the signal aborts. */
export async function showLogFile(
  path: string,
  wanted: { readonly lines: number; readonly follow: boolean; readonly signal: AbortSignal },
  { stdout, clock }: { readonly stdout: Output; readonly clock: Clock },
): Promise<void> {
  let { file, size, inode } = openLog(path);
  const from = Math.max(0, size - tailBytesMax);
  const tail = readFrom(file, from, size).toString().split("\n");
  stdout.write(tail.slice(-wanted.lines - 1).join("\n"));
  try {
    while (wanted.follow && !wanted.signal.aborted) {
      const news = readFrom(file, size, fstatSync(file).size);
      size += news.length;
      if (news.length > 0) stdout.write(news.toString());
      else if ((statSync(path, { throwIfNoEntry: false })?.ino ?? inode) !== inode) {
        closeSync(file);
        ({ file, inode } = openLog(path));
        size = 0;
      } else await sleep(clock, lookMs, wanted.signal);
    }
  } catch (error) {
    if (!wanted.signal.aborted) throw error;
  } finally {
    closeSync(file);
  }
}

function openLog(path: string): { readonly file: number; readonly size: number; readonly inode: number } {
  try {
    const file = openSync(path, "r");
    const { size, ino: inode } = fstatSync(file);
    return { file, size, inode };
  } catch (error) {
    throw new StartFailure(
      exitCodes.unavailable,
      `There is no log that can be read (${reasonOf(error)}): \`trunkline agent install\` installs the service that writes it.`,
    );
  }
}

function readFrom(file: number, from: number, to: number): Buffer {
  const buffer = Buffer.alloc(Math.max(0, Math.min(to - from, tailBytesMax)));
  return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, from));
}

/** Returns an output that shows the lines of a log as a terminal gets them from a running agent. */
export function readableLog(stdout: Output, { coloured }: { readonly coloured: boolean }): Output {
  let rest = "";
  return {
    write(text) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) stdout.write(readable(line, coloured));
    },
  };
}

/** Texts that are no JSON come from Node itself, or are the last words of a failed start. */
function readable(line: string, coloured: boolean): string {
  try {
    return logText(line, { coloured });
  } catch {
    return `${onOneLine(line)}\n`;
  }
}
