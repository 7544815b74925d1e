import { addAgentOptions, readJoinLine, type StartOptions, withOptions } from "./start-options.ts";
import { rmSync } from "node:fs";
import { type Environment, wholeNumber } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { pairingFile, readPairing, writePairing } from "#shared/site/pairing-file.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { type CliCommand, commandIn, readBy, type CliContext } from "../terminal/command-line.ts";
import { untilInterrupted } from "../terminal/interrupt.ts";

interface AgentOptions extends StartOptions {
  readonly settings?: string;
  readonly logFile?: string;
}

export function agentCommand(context: CliContext): CliCommand {
  const agent = commandIn("agent", context)
    .description("run an agent on a GPU machine, beside its model server; or install it as a service")
    .enablePositionalOptions();
  addAgentOptions(agent)
    .option("--settings <file>", "read settings from a file of lines NAME=value; the environment wins")
    .option("--log-file <file>", "write the log to a file, which is put aside as <file>.1 at 10 MB")
    .more(`
Dials out to its site: the machine needs no open port. Pair it once, with the line that "trunkline machines pair" prints on
the site; the pairing is kept in TRUNKLINE_STATE_DIR, and "trunkline agent" uses it from then on. With --join <line> other users
of the host see the line while Node starts, and as long as npx runs. HTTPS_PROXY and NO_PROXY are heeded. With TRUNKLINE_NATS_URL the agent connects to the site's NATS instead.

Uses the model servers that it finds on this machine, or those at TRUNKLINE_RUNTIME_URL, and waits for them when they are
not there yet. With --gguf it needs none: llama.cpp runs in the agent itself, by node-llama-cpp, which is installed apart
from Trunkline.

Examples:
  trunkline agent --join -                               # asks for the line that the site printed
  echo "https://models.example.org/#…" | trunkline agent --join -
  trunkline agent --gguf model.gguf
  trunkline agent install                                # a service that survives reboots
  TRUNKLINE_NATS_URL=tls://attic:…@broker.example:4222 TRUNKLINE_MACHINE=attic trunkline agent`)
    .action(async (given: AgentOptions) => {
      const { settings, logFile, replace = false } = given;
      const line = await readJoinLine(given, context);
      if (logFile !== undefined) await logTo(logFile);
      const { environment: own, stderr } = context;
      const environment = withOptions(settings === undefined ? own : await withFile(own, settings), given);
      const { joinMachine, runAgent } = await import("../../agent/main.ts");
      const say = (text: string): void => void stderr.write(`trunkline: ${text}\n`);
      if (line !== undefined) await joinMachine(environment, { line, replace, say });
      await runAgent(environment);
    });
  addInstall(agent, context);
  addUninstall(agent, context);
  addLogs(agent, context);
  return agent;
}

/** Returns the environment with the settings of a file below it. */
async function withFile(environment: Environment, file: string): Promise<Environment> {
  const { settingsIn, trustAuthorities } = await import("../service/service-settings.ts");
  const settings = settingsIn(file);
  trustAuthorities(settings);
  return { ...settings, ...environment };
}

/** Sends all that this process has to say on standard error to a file. */
async function logTo(path: string): Promise<void> {
  const { LogFile } = await import("../service/log-file.ts");
  const file = new LogFile(path);
  process.stderr.write = (text: string | Uint8Array): boolean => file.write(text.toString());
}

function addInstall(agent: CliCommand, context: CliContext): void {
  const { stdout, clock } = context;
  addAgentOptions(agent.command("install"))
    .description("install the agent as a service that survives reboots, or upgrade it")
    .more(`
Copies the program that runs now (also out of npx) into a folder of the service, and starts it there: by systemd, launchd
or the Task Scheduler of Windows. As root it is a service of the system, under a user of its own; otherwise it is yours.
The TRUNKLINE_ settings of this environment are kept in a file; those of an earlier installation stay. No secret is kept
there. --join pairs the machine first. Without it, a pairing in TRUNKLINE_STATE_DIR (.trunkline) moves to the service.

Examples:
  trunkline agent install
  trunkline agent install --join -                      # asks for the line that the site printed
  TRUNKLINE_RUNTIME_URL=http://127.0.0.1:8000 trunkline agent install
  sudo trunkline agent install                          # before anybody logs in, under a user of its own`)
    .action(async (given: StartOptions) => {
      const joinLine = await readJoinLine(given, context);
      const { installService } = await import("../service/install-service.ts");
      const { thisHost } = await import("../service/service-host.ts");
      const say = (line: string): void => void stdout.write(`${line}\n`);
      const environment = withOptions(context.environment, given);
      const before = environment["TRUNKLINE_STATE_DIR"] || ".trunkline";
      await installService({
        host: await thisHost(environment),
        clock,
        version: packageJson.version,
        pair: async (stateDir, settings) => {
          if (joinLine === undefined) return assertWay(stateDir, { before, settings, say });
          const { joinMachine } = await import("../../agent/main.ts");
          await joinMachine(settings, { line: joinLine, replace: given.replace ?? false, say });
        },
        say,
      });
    });
}

/** Any secret may come from a file, and a service takes it from nowhere else. */
const natsUrlFile = ["TRUNKLINE_NATS_URL", "FILE"].join("_");

/** Sees to it that the service can reach its site: by the pairing in its folder, or by one that moves there. */
export function assertWay(
  stateDir: string,
  { before, settings, say }: { before: string; settings: Environment; say: (line: string) => void },
): void {
  const [kept, found] = [readPairing(stateDir), readPairing(before)];
  const isNewer = found !== undefined && (kept === undefined || kept.pairedAt < found.pairedAt);
  if (!isNewer && (kept !== undefined || settings[natsUrlFile])) return;
  if (found === undefined) {
    throw new StartFailure(
      exitCodes.config,
      `This machine is not paired (there is no ${pairingFile(before)}): add --join with the line that \`trunkline machines pair\` prints on the site, or name a file with the URL of NATS in ${natsUrlFile}.`,
    );
  }
  writePairing(stateDir, found);
  rmSync(pairingFile(before));
  say(`The pairing as '${found.machine}' of ${found.origin} moved from ${before} to ${stateDir}.`);
}

function addUninstall(agent: CliCommand, { environment, stdout, clock }: CliContext): void {
  agent
    .sub("uninstall", "stop the service of the agent and remove it")
    .option("--purge", "remove its settings, its log and its pairing too")
    .more("\nExamples:\n  trunkline agent uninstall\n  trunkline agent uninstall --purge")
    .action(async ({ purge = false }: { readonly purge?: boolean }) => {
      const { uninstallService } = await import("../service/install-service.ts");
      const { thisHost } = await import("../service/service-host.ts");
      const say = (line: string): void => void stdout.write(`${line}\n`);
      await uninstallService({ host: await thisHost(environment), clock, say }, { purge });
    });
}

const linesDefault = 100;

function addLogs(agent: CliCommand, { environment, stdout, clock }: CliContext): void {
  agent
    .sub("logs", "show the log of the agent's service: text on a terminal, otherwise lines of JSON")
    .option("--follow", "go on until Ctrl-C")
    .option("--lines <count>", "how many of the latest lines", readBy(wholeNumber(1, 100_000)), linesDefault)
    .more("\nExamples:\n  trunkline agent logs\n  trunkline agent logs --follow --lines 10")
    .action(async ({ follow = false, lines }: { readonly follow?: boolean; readonly lines: number }) => {
      const { serviceManager, thisHost } = await import("../service/service-host.ts");
      const { readableLog, showLogFile } = await import("../service/log-file.ts");
      const host = await thisHost(environment);
      const { logs, places } = serviceManager(host.facts);
      const asText = stdout.isTTY && environment["TRUNKLINE_LOG_FORMAT"] !== "json";
      const shown = asText ? readableLog(stdout, { coloured: !environment["NO_COLOR"] }) : stdout;
      using interrupted = untilInterrupted();
      if (logs === undefined) {
        const { logFile = "" } = places;
        await showLogFile(logFile, { lines, follow, signal: interrupted.signal }, { stdout: shown, clock });
        return;
      }
      const exitCode = await host.show(logs({ lines, follow }), shown);
      if (exitCode === 0 || interrupted.signal.aborted) return;
      throw new StartFailure(
        exitCodes.failed,
        `journalctl failed (${exitCode}): is this user allowed to read the journal?`,
      );
    });
}
