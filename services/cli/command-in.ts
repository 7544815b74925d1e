import { Command } from "commander";
import { scrub } from "#shared/process/log.ts";
import type { Surroundings } from "./surroundings.ts";

/**
 * A command, and all that are made below it, that throws instead of ending the process. What commander says of wrong
 * usage repeats what was given, so that a key which was pasted in a wrong place is taken out of it.
 */
export function commandIn(name: string, { stdout, stderr }: Surroundings): Command {
  return new Command(name).exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(scrub(text)),
  });
}
