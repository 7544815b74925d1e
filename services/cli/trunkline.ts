import packageJson from "../../package.json" with { type: "json" };
import { CommanderError } from "commander";
import { systemClock as clock } from "#shared/process/clock.ts";
import { unknownSettings } from "#shared/process/setting-names.ts";
import { scrub } from "#shared/process/clean-text.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { supplyOlderNodes } from "#shared/process/older-nodes.ts";
import { addCommands } from "./listed-commands.ts";
import { commandIn, type CliContext } from "./terminal/command-line.ts";

interface CommandLine extends Omit<CliContext, "clock"> {
  readonly arguments: readonly string[];
}

/** Runs one command of `trunkline` and returns its exit code. Writes an error as one line on standard error. */
export async function trunkline({ arguments: words, ...given }: CommandLine): Promise<number> {
  supplyOlderNodes();
  const context = { ...given, clock };
  const { environment, stderr } = given;
  const program = commandIn("trunkline", context)
    .description("The language models of your own GPU machines behind one OpenAI-shaped endpoint.")
    .version(packageJson.version, "-V, --version", "print the version")
    // Options behind the name of a command are that command's, also where a subcommand has the same ones.
    .enablePositionalOptions()
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .more(`
Start with \`trunkline up\`. Every command has examples in its own --help. Settings are variables of the environment that
begin with TRUNKLINE_: docs/settings.md lists them.`)
    .showHelpAfterError("Run it with --help to see what there is.");
  await addCommands(program, words, context);
  program.helpCommand("help [command]", "show the help of a command");
  for (const warning of unknownSettings(environment)) stderr.write(`trunkline: ${warning}\n`);
  try {
    await program.parseAsync(words, { from: "user" });
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    if (error instanceof StartFailure) {
      stderr.write(`trunkline: ${scrub(error.message)}\n`);
      return error.exitCode;
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    stderr.write(`trunkline: ${scrub(text)}\n`);
    return exitCodes.failed;
  }
}
