import packageJson from "../../package.json" with { type: "json" };
import { CommanderError } from "commander";
import { systemClock as clock } from "#shared/process/clock.ts";
import { unknownSettings } from "#shared/process/setting-names.ts";
import { scrub } from "#shared/process/log.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { supplyOlderNodes } from "#shared/process/older-nodes.ts";
import { agentCommand } from "./commands/agent.ts";
import { backupCommand, restoreCommand } from "./commands/backup.ts";
import { chatCommand } from "./commands/chat.ts";
import { completionCommand } from "./commands/completion.ts";
import { consoleCommand } from "./commands/console.ts";
import { connectCommand } from "./connect/connect.ts";
import { doctorCommand } from "./doctor/doctor.ts";
import { keysCommand } from "./commands/keys.ts";
import { commandIn, type CliContext } from "./terminal/command-line.ts";
import { machinesCommand } from "./commands/machines.ts";
import { modelsCommand } from "./commands/models.ts";
import { natsCommand } from "./commands/nats.ts";
import { requestsCommand } from "./commands/requests.ts";
import { routeCommand } from "./commands/route.ts";
import { routesCommand } from "./commands/routes.ts";
import { gatewayCommand, upCommand } from "./commands/start-commands.ts";
import { sessionsCommand } from "./commands/sessions.ts";
import { statusCommand } from "./commands/status.ts";
import { usageCommand } from "./commands/usage.ts";

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
    .commandsGroup("Run:")
    .addCommand(upCommand(context))
    .addCommand(gatewayCommand(context))
    .addCommand(agentCommand(context))
    .commandsGroup("Use:")
    .addCommand(chatCommand(context))
    .addCommand(connectCommand(context))
    .commandsGroup("Manage:")
    .addCommand(keysCommand(context))
    .addCommand(machinesCommand(context))
    .addCommand(modelsCommand(context))
    .addCommand(routesCommand(context))
    .addCommand(sessionsCommand(context))
    .addCommand(natsCommand(context))
    .addCommand(backupCommand(context))
    .addCommand(restoreCommand(context))
    .commandsGroup("Watch:")
    .addCommand(consoleCommand(context))
    .addCommand(statusCommand(context))
    .addCommand(doctorCommand(context))
    .addCommand(routeCommand(context))
    .addCommand(requestsCommand(context))
    .addCommand(usageCommand(context))
    .commandsGroup("More:")
    .addCommand(completionCommand(context))
    .helpCommand("help [command]", "show the help of a command")
    .more(`
Start with \`trunkline up\`. Every command has examples in its own --help. Settings are variables of the environment that
begin with TRUNKLINE_: infra/settings.md lists them.`)
    .showHelpAfterError("Run it with --help to see what there is.");
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
