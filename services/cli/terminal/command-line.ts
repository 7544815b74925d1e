import type { Readable } from "node:stream";
import { type Argument, Command, InvalidArgumentError } from "commander";
import type { z } from "zod";
import type { Clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { scrub } from "#shared/process/clean-text.ts";
import type { StartFailure } from "#shared/process/lifecycle.ts";
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

/** The result of a command: the things that it found or did. */
export interface CommandResult {
  /** The line of JSON for programs. */
  readonly answer: unknown;
  /** The text for people, on standard output. A function gets the width of the terminal. */
  readonly text?: string | ((widthMax: number | undefined) => string);
  /** A sentence for people on standard error. */
  readonly remark?: string | undefined;
  /** A sentence on standard error that programs get too. */
  readonly warning?: string;
  /** The number of records that the answer leaves out because this version cannot read them. */
  readonly unread?: number;
  /** The error of the command, after all else was told. */
  readonly failure?: StartFailure | undefined;
}

/** The place of a command's work: the store, or a gateway. */
export interface Workplace<Means> {
  /** Adds the options and the help that belong to the place. */
  prepare?(command: CliCommand): unknown;
  open(
    context: CliContext,
    given: JsonOption,
    work: (means: Means) => Promise<CommandResult | undefined>,
  ): Promise<unknown>;
}

/** For commands that need neither the store nor a gateway. */
export const here: Workplace<CliContext> = { open: (context, _, work) => work(context) };

/** A command of Trunkline, with what many of its commands have. Subcommands are of this class too. */
export class CliCommand extends Command {
  readonly context: CliContext;

  constructor(name: string, context: CliContext) {
    super(name);
    this.context = context;
  }

  override createCommand(name: string): CliCommand {
    return new CliCommand(name, this.context);
  }

  /** Adds a command below this one. */
  sub(name: string, description: string, ...args: readonly Argument[]): CliCommand {
    const command = this.command(name).description(description);
    for (const each of args) command.addArgument(each);
    return command;
  }

  json(): this {
    return this.option("--json", "print the result as one line of JSON");
  }

  /** Adds a text after the options in the help: what a user has to know, and examples. */
  more(text: string): this {
    return this.addHelpText("after", text);
  }

  /**
   * Has the command work at a place and tell the result, with `--json` as JSON. `run` gets the arguments and the options. It
   * returns undefined if it has told all itself.
   */
  does<Means>(
    place: Workplace<Means>,
    run: (means: Means, ...given: never[]) => Promise<CommandResult | undefined>,
  ): this {
    place.prepare?.(this);
    return this.json().action(async (...given: readonly unknown[]) => {
      // Behind the arguments, Commander passes the options and the command.
      const options: JsonOption = Object(given.at(-2));
      await place.open(this.context, options, async (means) => {
        const told = await run(means, ...(given as never[]));
        if (told !== undefined) tell(told, options, this.context);
        return told;
      });
    });
  }
}

function tell(
  { answer, text = "", remark = "", warning = "", failure }: CommandResult,
  { json }: JsonOption,
  out: CliContext,
) {
  if (json) out.stdout.write(`${JSON.stringify(answer)}\n`);
  else out.stdout.write(asLines(typeof text === "string" ? text : text(widthOf(out.stdout))));
  out.stderr.write(asLines(warning) + (json ? "" : asLines(remark)));
  if (failure !== undefined) throw failure;
}

/** Ends a text with a line end, unless it is empty. */
function asLines(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

/**
 * Makes a command that throws instead of ending the process, and so do its subcommands: a `CommanderError` for wrong
 * usage, a `StartFailure` for every other error. Commander's usage errors repeat the arguments, so a key that was pasted
 * in a wrong place is removed from them.
 */
export function commandIn(name: string, context: CliContext): CliCommand {
  const { stdout, stderr } = context;
  return new CliCommand(name, context).exitOverride().configureOutput({
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

/** Returns the code of a system error, such as `ECONNREFUSED`, or the text of another error. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
