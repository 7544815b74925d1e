import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { isSea } from "node:sea";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { Output } from "../terminal/command-line.ts";
import type { ProgramFacts } from "./copy-program.ts";
import { launchd } from "./launchd.ts";
import { scheduledTask } from "./scheduled-task.ts";
import type { HostFacts, ServiceManager, Step } from "./service-manager.ts";
import { systemd } from "./systemd.ts";

export interface Ran {
  readonly exitCode: number;
  /** Standard output and standard error as they came. */
  readonly output: string;
}

/** The host of a service: its facts, and its commands. */
export interface ServiceHost {
  readonly facts: HostFacts;
  readonly program: ProgramFacts;
  /** The working directory of the command. */
  readonly folder: string;
  /** Runs a command to its end, within `commandMsMax`. A missing command counts as failed. */
  run(argv: Step["argv"]): Promise<Ran>;
  /** Runs a command until it ends. Its standard error is this process's own. */
  show(argv: Step["argv"], stdout: Output): Promise<number>;
}

/** Longest time of one command. A restart waits until the agent has finished what is under way, for 40 s at most. */
const commandMsMax = 90_000;
/** The exit code that shells report for a missing command. */
const missingCode = 127;

export async function thisHost(environment: Environment): Promise<ServiceHost> {
  const { platform, execPath, argv } = process;
  const { username, uid } = userInfo();
  const { PATH: path } = environment;
  return {
    facts: {
      platform,
      // Only an elevated console of Windows may list the sessions of its server.
      isAdministrator: platform === "win32" ? (await run(["net", "session"])).exitCode === 0 : uid === 0,
      userName: username,
      userId: Math.max(uid, 0),
      home: environment["HOME"] || homedir(),
      hasSystemd: existsSync("/run/systemd/system"),
      environment,
    },
    program: { execPath, script: argv[1], isExecutable: isSea(), path },
    folder: process.cwd(),
    run,
    show,
  };
}

function run([command, ...args]: Step["argv"]): Promise<Ran> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], windowsHide: true, timeout: commandMsMax });
    const done = (exitCode: number): void => resolve({ exitCode, output: Buffer.concat(pieces).toString().trim() });
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece: Buffer) => pieces.push(piece));
    child.once("error", () => done(missingCode));
    child.once("close", (code) => done(code ?? missingCode));
  });
}

function show([command, ...args]: Step["argv"], stdout: Output): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
    child.stdout.setEncoding("utf8").on("data", (text: string) => stdout.write(text));
    child.once("error", () => resolve(missingCode));
    child.once("close", (code) => resolve(code ?? 0));
  });
}

/** Returns the service manager of a host. Throws when there is none that Trunkline knows. */
export function serviceManager(facts: HostFacts): ServiceManager {
  if (facts.platform === "win32") return scheduledTask(facts);
  if (facts.platform === "darwin") return launchd(facts);
  if (facts.hasSystemd) return systemd(facts);
  throw new StartFailure(
    exitCodes.unavailable,
    "systemd does not run here (/run/systemd/system is missing), and services are made for systemd, launchd and Windows: let your init system or container start `trunkline agent`, and start it again when it ends.",
  );
}
