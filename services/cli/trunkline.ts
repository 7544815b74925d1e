import packageJson from "../../package.json" with { type: "json" };
import { Command, CommanderError } from "commander";
import { systemClock as clock } from "#shared/process/clock.ts";
import { unknownSettings } from "#shared/process/setting-names.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { agentCommand, gatewayCommand, upCommand } from "./start-commands.ts";
import { keysCommand } from "./keys.ts";
import { machinesCommand } from "./machines.ts";
import { modelsCommand } from "./models.ts";
import { routeCommand } from "./route.ts";
import { statusCommand } from "./status.ts";
import type { Surroundings } from "./command-line.ts";
import { usageCommand } from "./usage.ts";

interface CommandLine extends Omit<Surroundings, "clock"> {
  readonly arguments: readonly string[];
}

/** Runs one command of `trunkline` and returns its exit code. Writes an error as one line on standard error. */
export async function trunkline(commandLine: CommandLine): Promise<number> {
  const { environment, stdout, stderr } = commandLine;
  const program = new Command("trunkline")
    .description("The language models of your own GPU machines behind one OpenAI-shaped endpoint.")
    .version(packageJson.version, "-V, --version", "print the version")
    .addCommand(upCommand({ environment, stdout }))
    .addCommand(gatewayCommand(environment))
    .addCommand(agentCommand(environment))
    .addCommand(keysCommand({ environment, stdout, stderr, clock }))
    .addCommand(machinesCommand({ environment, stdout, stderr, clock }))
    .addCommand(modelsCommand({ environment, stdout, stderr, clock }))
    .addCommand(statusCommand({ environment, stdout, stderr, clock }))
    .addCommand(routeCommand({ environment, stdout, stderr, clock }))
    .addCommand(usageCommand({ environment, stdout, stderr, clock }))
    .addHelpText(
      "after",
      `
Start with \`trunkline up\`. Every command has examples in its own --help. Settings are variables of the environment that
begin with TRUNKLINE_: infra/settings.md lists them.`,
    )
    .showHelpAfterError("Run it with --help to see what there is.");
  for (const command of program.commands) command.exitOverride();
  program.exitOverride();
  for (const told of unknownSettings(environment)) stderr.write(`trunkline: ${told}\n`);
  try {
    await program.parseAsync(commandLine.arguments, { from: "user" });
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    if (error instanceof StartFailure) {
      stderr.write(`trunkline: ${error.message}\n`);
      return error.exitCode;
    }
    stderr.write(`trunkline: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return exitCodes.failed;
  }
}
