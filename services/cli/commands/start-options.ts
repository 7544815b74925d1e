import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Option } from "commander";
import { StartFailure, exitCodes } from "#shared/process/lifecycle.ts";
import type { JoinLine } from "#shared/protocol/pairing.ts";
import type { Environment } from "#shared/process/config.ts";
import type { CliCommand } from "../terminal/command-line.ts";
import { type CliContext } from "../terminal/command-line.ts";

/** The values of the options that several of `up`, `gateway` and `agent` have. */
export interface StartOptions {
  readonly join?: string;
  readonly joinFile?: string;
  readonly replace?: true;
  readonly gguf?: readonly string[];
  readonly public?: string;
}

/** Adds the options by which a machine joins a site, and `--gguf`. */
export function addAgentOptions(command: CliCommand): CliCommand {
  const join = "join a site first: - reads its line from standard input; a line in place of - may be seen by others";
  return command
    .addOption(new Option("--join <line>", join).conflicts("joinFile"))
    .option("--join-file <file>", "like --join, with the line from a file")
    .option("--replace", "with --join: leave the site that this machine is paired with")
    .addOption(ggufOption());
}

/** Makes the option that serves model files without a model server. */
export function ggufOption(): Option {
  const gather = (file: string, before: readonly string[] = []): readonly string[] => [...before, file];
  const what = "serve a GGUF file, or several with commas between (TRUNKLINE_GGUF); may be said more than once";
  return new Option("--gguf <file>", what).argParser(gather);
}

export function publicOption(): Option {
  return new Option("--public <url>", "the URL by which other hosts reach this site (TRUNKLINE_PUBLIC_URL)");
}

/** Returns the environment with the values of `--gguf` and `--public`, which override its own. */
export function withOptions(environment: Environment, { gguf, public: url }: StartOptions): Environment {
  return {
    ...environment,
    ...(gguf === undefined ? {} : { TRUNKLINE_GGUF: gguf.join(",") }),
    ...(url === undefined ? {} : { TRUNKLINE_PUBLIC_URL: url }),
  };
}

type AskingContext = Pick<CliContext, "stdin" | "stderr">;

/**
 * Returns the join line that was given, or undefined. It is parsed here and not by the option: a usage error would
 * repeat it.
 */
export async function readJoinLine(given: StartOptions, context: AskingContext): Promise<JoinLine | undefined> {
  const { join, joinFile, replace } = given;
  if (join === undefined && joinFile === undefined) {
    if (replace) throw new StartFailure(exitCodes.usage, "--replace goes with --join or --join-file.");
    return undefined;
  }
  const typed = join === "-" ? await askForLine(context) : (join ?? "");
  const text = joinFile === undefined ? typed : readLineOf(joinFile);
  const { parseJoinLine } = await import("#shared/protocol/pairing.ts");
  const line = parseJoinLine(text);
  if (line !== undefined) return line;
  const isClear = /^http:/i.test(text.trim());
  throw new StartFailure(
    exitCodes.usage,
    isClear
      ? "A join line with http:// works on this host only: start the site with an https:// URL (--public), and make a new line."
      : "This is no join line: paste the whole line that the site printed, from https:// to its end, in quotes.",
  );
}

function readLineOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const message = `--join-file: the file ${file} cannot be read; name one that this user may read.`;
    throw new StartFailure(exitCodes.usage, message, { cause: error });
  }
}

/** Reads one line. A person at a terminal need not end the input. */
async function askForLine({ stdin = process.stdin, stderr }: AskingContext): Promise<string> {
  if (stdin.isTTY) stderr.write("Paste the join line and press Enter: ");
  using lines = createInterface({ input: stdin, terminal: false });
  // Windows' `cmd` echoes the quotes too.
  for await (const line of lines) if (line.trim() !== "") return line.trim().replace(/^"(.*)"$/, "$1");
  return "";
}
