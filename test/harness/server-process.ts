import { findBinary } from "./find-binary.ts";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, rmSync } from "node:fs";
import type { ServerBody } from "./own-server.ts";
import { until } from "./until.ts";

const outputCharsMax = 2_000;

/** Each with its folder, for those that a test forgot to stop. */
const running = new Map<ChildProcess, string>();
process.once("exit", () => {
  for (const [child, folder] of running) {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

/** A server as a child process with a folder of its own, which is removed with it. */
export class ServerProcess implements ServerBody {
  readonly host = "127.0.0.1";
  readonly #binary: string;
  readonly #args: readonly string[];
  readonly #folder: string;
  readonly #environment: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;

  /** What `environment` says is added to ours. */
  constructor(options: {
    binary: string;
    args: readonly string[];
    folder: string;
    environment?: Readonly<Record<string, string>>;
  }) {
    this.#binary = options.binary;
    this.#args = options.args;
    this.#folder = options.folder;
    this.#environment = { ...process.env, ...options.environment };
  }

  get processId(): number | undefined {
    return this.#child?.pid;
  }

  async launch(): Promise<void> {
    const { command, args } = await this.#dyingWithUs();
    // A file takes the output, not a pipe: a test that blocks its event loop must not block the server too.
    const log = openSync(this.#logPath, "w");
    const child = spawn(command, args, {
      stdio: ["ignore", log, log],
      cwd: this.#folder,
      env: this.#environment,
    });
    closeSync(log);
    await once(child, "spawn");
    running.set(child, this.#folder);
    child.once("exit", () => running.delete(child));
    this.#child = child;
  }

  ended(): Promise<boolean> {
    return Promise.resolve(this.#alive === undefined);
  }

  async output(): Promise<string> {
    return (await readFile(this.#logPath, "utf8").catch(() => "")).slice(-outputCharsMax).trim();
  }

  async signal(name: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void> {
    const child = this.#alive;
    if (child === undefined) return;
    const exit = name === "SIGKILL" ? once(child, "exit") : undefined;
    child.kill(name);
    await exit;
    if (exit !== undefined || process.platform !== "linux") return;
    const stopped = name === "SIGSTOP";
    const what = `process ${child.pid} to be ${stopped ? "frozen" : "thawed"}`;
    await until(async () => (await allThreadsStopped(child.pid)) === stopped, { what });
  }

  async discard(): Promise<void> {
    await this.signal("SIGKILL");
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #alive(): ChildProcess | undefined {
    const child = this.#child;
    return child !== undefined && child.exitCode === null && child.signalCode === null ? child : undefined;
  }

  get #logPath(): string {
    return join(this.#folder, "server.log");
  }

  /** On Linux the kernel ends the server with us even when we are killed, which no hook of our own would notice. */
  async #dyingWithUs(): Promise<{ command: string; args: readonly string[] }> {
    const setpriv = process.platform === "linux" ? await findBinary("setpriv") : undefined;
    if (setpriv === undefined) return { command: this.#binary, args: this.#args };
    return { command: setpriv, args: ["--pdeathsig", "KILL", this.#binary, ...this.#args] };
  }
}

async function allThreadsStopped(processId: number | undefined): Promise<boolean> {
  const tasks = `/proc/${processId}/task`;
  const stats = await Promise.all(
    (await readdir(tasks)).map((thread) => readFile(join(tasks, thread, "stat"), "utf8")),
  );
  return stats.every((stat) => stat.slice(stat.lastIndexOf(")")).startsWith(") T"));
}
