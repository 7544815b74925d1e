import packageJson from "../../package.json" with { type: "json" };
import { Command, CommanderError } from "commander";
import { systemClock as clock } from "#shared/process/clock.ts";
import { unknownSettings } from "#shared/process/setting-names.ts";
import { scrub } from "#shared/process/log.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { supplyOlderNodes } from "#shared/process/older-nodes.ts";
import { agentCommand, gatewayCommand, upCommand } from "./start-commands.ts";
import { chatCommand, type ChatSurroundings } from "./chat.ts";
import { completionCommand } from "./completion.ts";
import { connectCommand } from "./connect/connect.ts";
import { doctorCommand } from "./doctor/doctor.ts";
import { keysCommand } from "./keys.ts";
import { widthOf } from "./command-line.ts";
import { machinesCommand } from "./machines.ts";
import { modelsCommand } from "./models.ts";
import { natsCommand } from "./nats.ts";
import { routeCommand } from "./route.ts";
import { routesCommand } from "./routes.ts";
import { statusCommand } from "./status.ts";
import { fitParagraphs } from "./table-text.ts";
import { usageCommand } from "./usage.ts";

interface CommandLine extends Omit<ChatSurroundings, "clock"> {
  readonly arguments: readonly string[];
}

/** Runs one command of `trunkline` and returns its exit code. Writes an error as one line on standard error. */
export async function trunkline(commandLine: CommandLine): Promise<number> {
  supplyOlderNodes();
  const { environment, stdin, stdout, stderr } = commandLine;
  const program = new Command("trunkline")
    .description("The language models of your own GPU machines behind one OpenAI-shaped endpoint.")
    .version(packageJson.version, "-V, --version", "print the version")
    // Options behind the name of a command are that command's, also where a subcommand has the same ones.
    .enablePositionalOptions()
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .commandsGroup("Run:")
    .addCommand(upCommand({ environment, stdout }))
    .addCommand(gatewayCommand(environment))
    .addCommand(agentCommand({ environment, stdin, stdout, stderr, clock }))
    .commandsGroup("Use:")
    .addCommand(chatCommand({ environment, stdin, stdout, stderr, clock }))
    .addCommand(connectCommand({ environment, stdin, stdout, stderr, clock }))
    .commandsGroup("Manage:")
    .addCommand(keysCommand({ environment, stdout, stderr, clock }))
    .addCommand(machinesCommand({ environment, stdout, stderr, clock }))
    .addCommand(modelsCommand({ environment, stdout, stderr, clock }))
    .addCommand(routesCommand({ environment, stdout, stderr, clock }))
    .addCommand(natsCommand({ environment, stdout, stderr, clock }))
    .commandsGroup("Watch:")
    .addCommand(statusCommand({ environment, stdout, stderr, clock }))
    .addCommand(doctorCommand({ environment, stdout, stderr, clock }))
    .addCommand(routeCommand({ environment, stdout, stderr, clock }))
    .addCommand(usageCommand({ environment, stdout, stderr, clock }))
    .commandsGroup("More:")
    .addCommand(completionCommand({ stdout }))
    .helpCommand("help [command]", "show the help of a command")
    .addHelpText(
      "after",
      `
Start with \`trunkline up\`. Every command has examples in its own --help. Settings are variables of the environment that
begin with TRUNKLINE_: infra/settings.md lists them.`,
    )
    .showHelpAfterError("Run it with --help to see what there is.");
  for (const command of allIn(program)) {
    command.exitOverride().configureOutput({
      writeOut: (text) => void stdout.write(fitParagraphs(text, widthOf(stdout))),
      writeErr: (text) => void stderr.write(scrub(text)),
    });
  }
  for (const warning of unknownSettings(environment)) stderr.write(`trunkline: ${warning}\n`);
  try {
    await program.parseAsync(commandLine.arguments, { from: "user" });
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

function allIn(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(allIn)];
}
