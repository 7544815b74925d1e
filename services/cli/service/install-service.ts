import { reasonOf } from "#shared/fault/fault.ts";
import {
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type Clock, sleep } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { makeStateFolder } from "#shared/process/state-folder.ts";
import { agentConfig, agentSettingNames } from "../../agent/config.ts";
import { engineFolderOf, findProgram, placeProgram, removeOlderPrograms, type RunningProgram } from "./copy-program.ts";
import { type ServiceHost, serviceManager } from "./service-host.ts";
import type { ServiceManager, ServicePlaces, Step } from "./service-manager.ts";
import { settingsIn, settingsText, settingsToKeep } from "./service-settings.ts";

interface InstallParts {
  readonly host: ServiceHost;
  readonly clock: Clock;
  readonly version: string;
  /** Sees to it that the machine is paired, with its pairing in this folder. */
  readonly pair: (stateDir: string, settings: Environment) => Promise<void>;
  /** Shows a line to the person who installs. */
  readonly say: (line: string) => void;
}

const mark = "trunkline agent install";
const engine = "node-llama-cpp";

/**
 * Installs the agent of this machine as a service, or upgrades it, and starts it. An older service goes on as it was
 * until its restart, which is one of the last steps.
 */
export async function installService(parts: InstallParts): Promise<void> {
  const { host, version, say } = parts;
  const manager = serviceManager(host.facts);
  const { places, isSealed } = manager;
  assertOwn(places.definition);
  const program = findProgram(host.program);
  const settings = settingsOf(host, { program, places });
  // The agent will refuse the same settings, but nobody would read why.
  agentConfig(settings);
  const name = `${version}-${parts.clock.wall().toString(36)}`;
  const placed = placeProgram(program, { programs: places.programs, name, isSealed });
  try {
    await assertStart(placed.argv, host);
    makeStateFolder(places.stateDir);
    await parts.pair(places.stateDir, settings);
    giveToService(places.stateDir);
  } catch (error) {
    if (placed.folder !== undefined) rmSync(placed.folder, { recursive: true, force: true });
    throw error;
  }

  write(places.settingsFile, settingsText(settings), 0o600);
  write(places.definition, manager.definition(placed.argv, settings), 0o644);
  const told: string[] = [];
  for (const step of manager.start) told.push(await take(step, parts));
  await assertLife(manager, parts);
  removeOlderPrograms(places.programs, { except: placed.folder });
  say(`The agent runs as a service, version ${version}. ${told.find((remedy) => remedy !== "") ?? manager.runs}
  program   ${placed.folder ?? placed.argv.join(" ")}
  settings  ${places.settingsFile}
  pairing   ${places.stateDir}
\`trunkline agent logs --follow\` shows its log. \`trunkline agent install\` of a newer version upgrades it.`);
}

/** Stops the service and removes it. The pairing and the settings stay, unless they are to be purged. */
export async function uninstallService(
  parts: Pick<InstallParts, "host" | "clock" | "say">,
  { purge }: { readonly purge: boolean },
): Promise<void> {
  const { host, say } = parts;
  const manager = serviceManager(host.facts);
  const { definition, programs, settingsFile, stateDir, logFile } = manager.places;
  const wasThere = existsSync(definition);
  if (wasThere) {
    assertOwn(definition);
    for (const step of manager.stop) await take(step, parts);
    rmSync(definition);
    for (const step of manager.afterRemoval) await take(step, parts);
  }
  rmSync(programs, { recursive: true, force: true });
  const kept = [settingsFile, stateDir, ...(logFile === undefined ? [] : [logFile])].filter((path) => existsSync(path));
  if (purge) {
    // systemd makes the state folder of a service without a user a link.
    for (const path of kept.flatMap((each) => [realpathSync(each), each])) {
      rmSync(path, { recursive: true, force: true });
    }
  }
  say(wasThere ? "The agent's service is gone." : `There was no service (${definition} is missing).`);
  if (kept.length === 0) return;
  say(
    purge
      ? `So are ${kept.join(", ")}. The site still knows the machine until \`trunkline machines revoke\` there.`
      : `${kept.join(", ")} stay for the next installation; --purge removes them too.`,
  );
}

function settingsOf(
  host: ServiceHost,
  { program, places }: { readonly program: RunningProgram; readonly places: ServicePlaces },
): Record<string, string> {
  const { platform, environment } = host.facts;
  const kept = existsSync(places.settingsFile) ? settingsIn(places.settingsFile) : {};
  const given = settingsToKeep(environment, { names: agentSettingNames, folder: host.folder, platform });
  const settings: Record<string, string> = { ...kept, ...given, TRUNKLINE_STATE_DIR: places.stateDir };
  const needsEngine = settings["TRUNKLINE_GGUF"] !== undefined && settings["TRUNKLINE_ENGINE_DIR"] === undefined;
  const engineFolder = needsEngine ? engineFolderOf(program, engine) : undefined;
  return engineFolder === undefined ? settings : { ...settings, TRUNKLINE_ENGINE_DIR: engineFolder };
}

/** Refuses to replace a service that somebody wrote by hand. */
function assertOwn(definition: string): void {
  // Without the zeros of UTF-16.
  if (!existsSync(definition) || readFileSync(definition, "latin1").replaceAll("\0", "").includes(mark)) return;
  throw new StartFailure(
    exitCodes.cannotCreate,
    `${definition} was not written by \`${mark}\`, so it is left as it is: move it away first, and its settings into the environment of this command.`,
  );
}

/** Runs the copied program once: a copy that lacks a part must not take the place of a service that runs. */
async function assertStart(argv: Step["argv"], host: ServiceHost): Promise<void> {
  const { exitCode, output } = await host.run([...argv, "--version"]);
  if (exitCode === 0) return;
  throw new StartFailure(
    exitCodes.failed,
    `\`${argv.join(" ")} --version\` does not run (${lastLine(output) || `exit code ${exitCode}`}), so nothing was changed: install Trunkline anew and run this again.`,
  );
}

/**
 * Gives the files of the state folder to its owner: a system service runs as a user of its own, and this is root. A link
 * is given and not its target, or the service could make itself the owner of any file.
 */
function giveToService(stateDir: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(stateDir);
  for (const name of readdirSync(stateDir)) lchownSync(join(stateDir, name), uid, gid);
}

function write(file: string, content: string | Uint8Array, mode: number): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}.new`, content, { mode });
    renameSync(`${file}.new`, file);
  } catch (error) {
    const message = `${file} cannot be written (${reasonOf(error)}): let this user write there.`;
    throw new StartFailure(exitCodes.cannotCreate, message);
  }
}

const retryMs = 500;

/** Runs a step. Returns the remedy of one that failed and may. */
async function take(step: Step, { host, clock }: Pick<InstallParts, "host" | "clock">): Promise<string> {
  const { argv, otherwise, patienceMs = 0 } = step;
  const untilMs = clock.now() + patienceMs;
  for (;;) {
    const { exitCode, output } = await host.run(argv);
    if (exitCode === 0) return "";
    if (clock.now() < untilMs) {
      await sleep(clock, retryMs);
      continue;
    }
    if (otherwise !== undefined) return otherwise;
    const reason = onOneLine(output.replaceAll(/\n\s*/g, " ")) || `exit code ${exitCode}`;
    const noSession = argv.includes("--user") && /bus|XDG_RUNTIME_DIR/.test(reason);
    const remedy = noSession
      ? "log in as this user itself, by SSH or at the console and not by su or sudo; or run this as root for a service of the system"
      : "mend that and run this again";
    throw new StartFailure(exitCodes.failed, `\`${argv.join(" ")}\` failed (${reason}): ${remedy}.`);
  }
}

/** Time for which a started agent is watched: settings that cannot work end it within this time. */
const watchedMs = 3_000;
const logLines = 20;

async function assertLife({ state, logs }: ServiceManager, { host, clock }: InstallParts): Promise<void> {
  if (state === undefined) return;
  const untilMs = clock.now() + watchedMs;
  while (clock.now() < untilMs) {
    const { output } = await host.run(state.argv);
    if (state.ended.test(output)) {
      const log = logs && (await host.run(logs({ lines: logLines, follow: false })));
      throw new StartFailure(
        exitCodes.failed,
        `The service is installed, and its agent ended: ${lastLine(log?.output ?? "") || "it left no reason"}`,
      );
    }
    await sleep(clock, retryMs);
  }
}

function lastLine(output: string): string {
  return onOneLine(output.trimEnd().split("\n").at(-1) ?? "");
}
