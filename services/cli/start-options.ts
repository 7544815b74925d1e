import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { type Command, Option } from "commander";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { Environment } from "#shared/process/config.ts";
import type { JoinLine } from "#shared/protocol/pairing.ts";
import type { Surroundings } from "./command-line.ts";

/** The values of the options by which a machine joins a site. */
export interface JoinGiven {
  readonly join?: string;
  readonly joinFile?: string;
  readonly replace?: true;
}

/** Adds the options by which a machine joins a site. */
export function addJoinOptions(command: Command): Command {
  const join = "join a site first: the line that it printed, or - to read it from standard input";
  const replace = "with --join: leave the site that this machine is paired with";
  return command
    .addOption(new Option("--join <line>", join).conflicts("joinFile"))
    .option("--join-file <file>", "like --join, with the line from a file")
    .option("--replace", replace);
}

export interface JoinSurroundings extends Pick<Surroundings, "stderr"> {
  /** Standard input unless another is given. */
  readonly stdin?: (Readable & { readonly isTTY?: boolean }) | undefined;
}

/**
 * Returns the join line that was given, or undefined. It is parsed here and not by the option: a usage error would
 * repeat it.
 */
export async function readJoinLine(given: JoinGiven, surroundings: JoinSurroundings): Promise<JoinLine | undefined> {
  const { join, joinFile, replace } = given;
  if (join === undefined && joinFile === undefined) {
    if (replace) throw new StartFailure(exitCodes.usage, "--replace goes with --join or --join-file.");
    return undefined;
  }
  const text = joinFile !== undefined ? readLineOf(joinFile) : join === "-" ? await askForLine(surroundings) : join;
  const { parseJoinLine } = await import("#shared/protocol/pairing.ts");
  const line = parseJoinLine(text ?? "");
  if (line !== undefined) return line;
  const isClear = /^http:/i.test((text ?? "").trim());
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
    throw new StartFailure(
      exitCodes.usage,
      `--join-file: the file ${file} cannot be read; name one that this user may read.`,
      {
        cause: error,
      },
    );
  }
}

/** Reads one line. A person at a terminal need not end the input. */
async function askForLine({ stdin = process.stdin, stderr }: JoinSurroundings): Promise<string> {
  if (stdin.isTTY) stderr.write("Paste the join line and press Enter: ");
  const lines = createInterface({ input: stdin, terminal: false });
  try {
    for await (const line of lines) if (line.trim() !== "") return line;
    return "";
  } finally {
    lines.close();
  }
}

/** The values of `--gguf`, one for each use of the option. */
export interface GgufGiven {
  readonly gguf?: readonly string[];
}

/** Makes the option that serves model files without a model server, for commands that start an agent. */
export function ggufOption(): Option {
  const gather = (file: string, before: readonly string[] = []): readonly string[] => [...before, file];
  const what = "serve a GGUF file, or several with commas between (TRUNKLINE_GGUF); may be said more than once";
  return new Option("--gguf <file>", what).argParser(gather);
}

/** Returns the environment with the values of `--gguf`, which override its own. */
export function withGguf(environment: Environment, { gguf }: GgufGiven): Environment {
  return gguf === undefined ? environment : { ...environment, TRUNKLINE_GGUF: gguf.join(",") };
}

/** The value of `--public`. */
export interface PublicGiven {
  readonly public?: string;
}

export function publicOption(): Option {
  return new Option("--public <url>", "the URL by which other hosts reach this site (TRUNKLINE_PUBLIC_URL)");
}

/** Returns the environment with the value of `--public`, which overrides its own. */
export function withPublic(environment: Environment, { public: url }: PublicGiven): Environment {
  return url === undefined ? environment : { ...environment, TRUNKLINE_PUBLIC_URL: url };
}
