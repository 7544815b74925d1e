import type { Readable } from "node:stream";
import type { Command } from "commander";
import { systemClock, type Clock } from "#shared/process/clock.ts";
import type { CliContext } from "../../services/cli/terminal/command-line.ts";
import { trunkline } from "../../services/cli/trunkline.ts";
import type { Settings } from "./trunkline-command.ts";

interface Said {
  /** The text on standard output. */
  readonly out: string;
  /** The text on standard error. */
  readonly err: string;
}

/** Runs `trunkline <args>` in this process. */
export async function trunklineHere(
  args: readonly string[],
  environment: Settings,
  { stdin, isTTY }: { readonly stdin?: Readable & { readonly isTTY?: boolean }; readonly isTTY?: boolean } = {},
): Promise<Said & { readonly exitCode: number }> {
  let [out, err] = ["", ""];
  const exitCode = await trunkline({
    arguments: args,
    environment,
    stdin,
    stdout: { write: (each) => (out += each), ...(isTTY !== undefined && { isTTY }) },
    stderr: { write: (each) => (err += each) },
  });
  return { exitCode, out, err };
}

/** Runs one command in this process, by a clock of the test. It throws what ends the command with another code than 0. */
export async function commandHere(
  make: (context: CliContext) => Command,
  args: readonly string[],
  { environment, clock = systemClock }: { readonly environment: Settings; readonly clock?: Clock },
): Promise<Said> {
  const said = { out: "", err: "" };
  const command = make({
    environment,
    stdout: { write: (text) => (said.out += text) },
    stderr: { write: (text) => (said.err += text) },
    clock,
  });
  await command.parseAsync(args, { from: "user" }).catch((error: unknown) => {
    throw Object.assign(error instanceof Error ? error : new Error(String(error)), { said });
  });
  return said;
}
