#!/usr/bin/env node
import { Command, CommanderError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { systemClock as clock } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import { agentCommand } from "./agent.ts";
import { gatewayCommand } from "./gateway.ts";
import { keysCommand } from "./keys.ts";
import { upCommand } from "./up.ts";

const { env: environment, stdout, stderr } = process;

const trunkline = new Command("trunkline")
  .description("The language models of your own GPU machines behind one OpenAI-shaped endpoint.")
  .version(packageJson.version, "-V, --version", "print the version")
  .addCommand(upCommand({ environment, stdout }))
  .addCommand(gatewayCommand(environment))
  .addCommand(agentCommand(environment))
  .addCommand(keysCommand({ environment, stdout, stderr, clock }))
  .showHelpAfterError("Run it with --help to see what there is.");
for (const command of trunkline.commands) command.exitOverride();
trunkline.exitOverride();

try {
  await trunkline.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  if (error instanceof StartFailure) {
    stderr.write(`trunkline: ${error.message}\n`);
    return error.exitCode;
  }
  stderr.write(`trunkline: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return exitCodes.failed;
}
