import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, rmSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBinary } from "./find-binary.ts";
import { until } from "./until.ts";

interface ChildOptions {
  readonly binary: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder that it runs in; one of its own unless told. */
  readonly cwd?: string;
}

/** Each with its folder, for those that a test forgot. */
const running = new Map<ChildProcess, string>();
process.once("exit", () => {
  for (const [child, folder] of running) {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

/**
 * A child process with a throw-away folder that it runs in unless another is named. It ends with us, whatever ends us. Its output goes to files
 * and not to pipes: a test that blocks its event loop must not block the child too.
 */
export class OwnedChild implements AsyncDisposable {
  /** The folder is the child's own until it is disposed of. */
  readonly folder: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, folder: string) {
    this.#child = child;
    this.folder = folder;
  }

  static async start({ binary, args, environment, cwd }: ChildOptions): Promise<OwnedChild> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-process-"));
    const [out, err] = [openSync(join(folder, "stdout"), "w"), openSync(join(folder, "stderr"), "w")];
    try {
      const command = await dyingWithUs([binary, ...args]);
      const [first = binary, ...rest] = command;
      const child = spawn(first, rest, { stdio: ["ignore", out, err], cwd: cwd ?? folder, env: environment });
      running.set(child, folder);
      child.once("exit", () => running.delete(child));
      await once(child, "spawn");
      return new OwnedChild(child, folder);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    } finally {
      closeSync(out);
      closeSync(err);
    }
  }

  get processId(): number | undefined {
    return this.#child.pid;
  }

  get ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** The exit code, or the name of the signal that ended it. */
  async exit(): Promise<number | string> {
    if (!this.ended) await once(this.#child, "exit");
    return this.#child.exitCode ?? this.#child.signalCode ?? "unknown";
  }

  stdout(): Promise<string> {
    return readFile(join(this.folder, "stdout"), "utf8");
  }

  stderr(): Promise<string> {
    return readFile(join(this.folder, "stderr"), "utf8");
  }

  /** Asks it to stop; what it does about it is its own. */
  signal(name: "SIGTERM" | "SIGINT" | "SIGHUP"): void {
    this.#child.kill(name);
  }

  /** SIGKILL: resolves when it is gone. */
  async kill(): Promise<void> {
    if (this.ended) return;
    this.#child.kill("SIGKILL");
    await this.exit();
  }

  /** SIGSTOP: resolves when all its threads stand still; its connections stay open. */
  freeze(): Promise<void> {
    return this.#halt("SIGSTOP", true);
  }

  /** SIGCONT: goes on where it was frozen. */
  thaw(): Promise<void> {
    return this.#halt("SIGCONT", false);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }

  async #halt(name: "SIGSTOP" | "SIGCONT", stopped: boolean): Promise<void> {
    const { pid } = this.#child;
    this.#child.kill(name);
    if (process.platform !== "linux") return;
    const what = `process ${pid} to be ${stopped ? "frozen" : "thawed"}`;
    await until(async () => (await allThreadsStopped(pid)) === stopped, { what });
  }
}

/** On Linux the kernel ends the child with us even when we are killed, which no hook of our own would notice. */
async function dyingWithUs(command: readonly string[]): Promise<readonly string[]> {
  const setpriv = process.platform === "linux" ? await findBinary("setpriv") : undefined;
  return setpriv === undefined ? command : [setpriv, "--pdeathsig", "KILL", ...command];
}

async function allThreadsStopped(processId: number | undefined): Promise<boolean> {
  const tasks = `/proc/${processId}/task`;
  const stats = await Promise.all(
    (await readdir(tasks)).map((thread) => readFile(join(tasks, thread, "stat"), "utf8")),
  );
  return stats.every((stat) => stat.slice(stat.lastIndexOf(")")).startsWith(") T"));
}
