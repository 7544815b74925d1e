import { rmSync } from "node:fs";
import { type Command, Option } from "commander";
import { wholeNumber } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { pairingFile, readPairing, writePairing } from "#shared/site/pairing-file.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { readBy, type Surroundings, untilInterrupted } from "../command-line.ts";
import {
  addJoinOptions,
  type GgufGiven,
  ggufOption,
  type JoinGiven,
  type JoinSurroundings,
  readJoinLine,
  withGguf,
} from "../start-options.ts";

/** Adds `install`, `uninstall` and `logs` to the command `trunkline agent`. */
export function addServiceCommands(agent: Command, surroundings: Surroundings & JoinSurroundings): void {
  addInstall(agent, surroundings);
  addUninstall(agent, surroundings);
  addLogs(agent, surroundings);
}

function addInstall(agent: Command, surroundings: Surroundings & JoinSurroundings): void {
  const { stdout, clock } = surroundings;
  addJoinOptions(agent.command("install"))
    .description("install the agent as a service that survives reboots, or upgrade it")
    .addOption(ggufOption())
    .addHelpText(
      "after",
      `
Copies the program that runs now (also out of npx) into a folder of the service, and starts it there: by systemd, launchd
or the Task Scheduler of Windows. As root it is a service of the system, under a user of its own; otherwise it is yours.
The TRUNKLINE_ settings of this environment are kept in a file; those of an earlier installation stay. No secret is kept
there. --join pairs the machine first. Without it, a pairing in TRUNKLINE_STATE_DIR (.trunkline) moves to the service.

Examples:
  trunkline agent install
  trunkline agent install --join -                      # asks for the line that the site printed
  TRUNKLINE_RUNTIME_URL=http://127.0.0.1:8000 trunkline agent install
  sudo trunkline agent install                          # before anybody logs in, under a user of its own`,
    )
    .action(async (given: GgufGiven & JoinGiven) => {
      const joinLine = await readJoinLine(given, surroundings);
      const [{ installService }, { thisHost }, { agentConfig, agentSettingNames }] = await Promise.all([
        import("./install-service.ts"),
        import("./service-host.ts"),
        import("../../agent/config.ts"),
      ]);
      const say = (line: string): void => void stdout.write(`${line}\n`);
      const environment = withGguf(surroundings.environment, given);
      const before = environment["TRUNKLINE_STATE_DIR"] || ".trunkline";
      await installService({
        host: await thisHost(environment),
        clock,
        version: packageJson.version,
        names: agentSettingNames,
        check: (settings) => void agentConfig(settings),
        pair: async (stateDir, settings) => {
          if (joinLine === undefined) return insistOnWay(stateDir, { before, settings, say });
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
export function insistOnWay(
  stateDir: string,
  given: {
    readonly before: string;
    readonly settings: Readonly<Record<string, string | undefined>>;
    readonly say: (line: string) => void;
  },
): void {
  const { before, settings, say } = given;
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

function addUninstall(agent: Command, { environment, stdout, clock }: Surroundings): void {
  agent
    .command("uninstall")
    .description("stop the service of the agent and remove it")
    .addOption(new Option("--purge", "remove its settings, its log and its pairing too"))
    .addHelpText("after", "\nExamples:\n  trunkline agent uninstall\n  trunkline agent uninstall --purge")
    .action(async ({ purge = false }: { readonly purge?: boolean }) => {
      const [{ uninstallService }, { thisHost }] = await Promise.all([
        import("./install-service.ts"),
        import("./service-host.ts"),
      ]);
      const say = (line: string): void => void stdout.write(`${line}\n`);
      await uninstallService({ host: await thisHost(environment), clock, say }, { purge });
    });
}

const linesDefault = 100;

function addLogs(agent: Command, { environment, stdout, clock }: Surroundings): void {
  agent
    .command("logs")
    .description("show the log of the agent's service: text on a terminal, otherwise lines of JSON")
    .addOption(new Option("--follow", "go on until Ctrl-C"))
    .addOption(
      new Option("--lines <count>", "how many of the latest lines")
        .default(linesDefault)
        .argParser(readBy(wholeNumber(1, 100_000))),
    )
    .addHelpText("after", "\nExamples:\n  trunkline agent logs\n  trunkline agent logs --follow --lines 10")
    .action(async ({ follow = false, lines }: { readonly follow?: boolean; readonly lines: number }) => {
      const [{ serviceManager }, { thisHost }, { readableLog, showLogFile }] = await Promise.all([
        import("./install-service.ts"),
        import("./service-host.ts"),
        import("./log-file.ts"),
      ]);
      const host = await thisHost(environment);
      const { logs, places } = serviceManager(host.facts);
      const asText = stdout.isTTY && environment["TRUNKLINE_LOG_FORMAT"] !== "json";
      const shown = asText ? readableLog(stdout, { coloured: !environment["NO_COLOR"] }) : stdout;
      const interrupted = untilInterrupted();
      try {
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
      } finally {
        interrupted.release();
      }
    });
}
