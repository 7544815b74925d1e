import type { Readable } from "node:stream";
import { Command, InvalidArgumentError } from "commander";
import type { z } from "zod";
import type { Clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { scrub } from "#shared/process/clean-text.ts";
import { fitParagraphs } from "./table-text.ts";

export interface Output {
  write(text: string): unknown;
  /** True if the output is a terminal. `columns` and `rows` are its size. */
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** The width of a terminal that does not report its own, such as a serial line. */
const columnsDefault = 80;

/** Returns the maximum width of a line in columns. Undefined when the output is no terminal. */
export function widthOf({ isTTY, columns }: Output): number | undefined {
  return isTTY ? columns || columnsDefault : undefined;
}

/** The environment of a command: its variables, its outputs and its clock. */
export interface CliContext {
  readonly environment: Environment;
  /** Results only. */
  readonly stdout: Output;
  /** Messages to people. */
  readonly stderr: Output;
  /** Standard input of the process unless another is given. */
  readonly stdin?: (Readable & { readonly isTTY?: boolean }) | undefined;
  readonly clock: Clock;
}

/** A command of Trunkline, with what many of its commands have. Subcommands are of this class too. */
export class CliCommand extends Command {
  override createCommand(name: string): CliCommand {
    return new CliCommand(name);
  }

  /** Adds what several commands share, in its place among the options of this one. */
  with(add: (command: CliCommand) => unknown): this {
    add(this);
    return this;
  }

  json(): this {
    return this.option("--json", "print the result as one line of JSON");
  }

  /** Adds a text after the options in the help: what a user has to know, and examples. */
  more(text: string): this {
    return this.addHelpText("after", text);
  }
}

/**
 * Makes a command that throws instead of ending the process, and so do its subcommands: a `CommanderError` for wrong
 * usage, a `StartFailure` for every other error. Commander's usage errors repeat the arguments, so a key that was pasted
 * in a wrong place is removed from them.
 */
export function commandIn(name: string, { stdout, stderr }: Pick<CliContext, "stdout" | "stderr">): CliCommand {
  return new CliCommand(name).exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(fitParagraphs(text, widthOf(stdout))),
    writeErr: (text) => void stderr.write(scrub(text)),
  });
}

export interface JsonOption {
  readonly json?: true | undefined;
}

/** Returns a parser of an option's value. A value that does not fit becomes a usage error that names the option. */
export function readBy<Value>(schema: z.ZodType<Value, string>): (text: string) => Value {
  return (text) => {
    const read = schema.safeParse(text);
    if (read.success) return read.data;
    throw new InvalidArgumentError(`It ${read.error.issues[0]?.message}.`);
  };
}

/** The value that removes a limit. Commander would turn null into an empty string. */
export const none = "none";
export type OrNone<Value> = Value | typeof none;

/** Like `readBy`, but returns `none` for each of these words. */
export function readByUnless<Value>(
  words: readonly string[],
  schema: z.ZodType<Value, string>,
): (text: string) => OrNone<Value> {
  const read = readBy(schema);
  return (text) => (words.includes(text) ? none : read(text));
}

/** The exit code that shells report for a command that Ctrl-C ended. */
export const interruptedCode = 130;

/** Returns a signal that aborts at the first Ctrl-C, until it is disposed of. The second Ctrl-C ends the process, as usual. */
export function untilInterrupted(): Disposable & { readonly signal: AbortSignal } {
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  process.once("SIGINT", interrupt);
  return { signal: interrupted.signal, [Symbol.dispose]: () => void process.off("SIGINT", interrupt) };
}

/** Returns the code of a system error, such as `ECONNREFUSED`, or the text of another error. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
