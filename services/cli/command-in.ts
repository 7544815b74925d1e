import { Command } from "commander";
import { scrub } from "#shared/process/log.ts";
import type { Surroundings } from "./surroundings.ts";

/**
 * Makes a command that throws instead of ending the process; so do its subcommands. Commander's usage errors repeat the
 * arguments, so a key that was pasted in a wrong place is removed from them.
 */
export function commandIn(name: string, { stdout, stderr }: Surroundings): Command {
  return new Command(name).exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(scrub(text)),
  });
}
