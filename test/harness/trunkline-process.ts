import { join } from "node:path";
import { z } from "zod";
import type { OwnedChild } from "./owned-child.ts";
import { endShowing, showOnFailure, type Witness } from "./show-on-failure.ts";
import { launchTrunkline, type Program, type Settings } from "./trunkline-command.ts";
import { until } from "./until.ts";

/** One line of a process's log. */
const logLine = z.looseObject({ msg: z.string(), level: z.number() });
export type LogLine = z.infer<typeof logLine>;

/** Below the time of a test, so that what the process said is shown when it hangs. */
const startTimeoutMs = 12_000;
/** For all that tests let a process finish before it ends. */
const stopTimeoutMs = 10_000;

/**
 * A long-running process of the product, which a test may kill, freeze and stop. Calls resolve when it is so. Its state
 * folder and all that it wrote are gone when it is disposed of; what it said is shown when the test fails.
 */
export class TrunklineProcess implements AsyncDisposable {
  readonly title: string;
  readonly #child: OwnedChild;
  readonly #witness: Witness;

  private constructor(title: string, child: OwnedChild) {
    this.title = title;
    this.#child = child;
    this.#witness = { title, said: () => child.stderr() };
    showOnFailure(this.#witness);
  }

  /** Starts `trunkline <args>` with a state folder of its own unless `settings` name one. */
  static async start(options: {
    readonly args: readonly string[];
    readonly settings: Settings;
    readonly title?: string;
    readonly program?: Program | undefined;
  }): Promise<TrunklineProcess> {
    const { args, settings, title = `trunkline ${args.join(" ")}`, program } = options;
    return new TrunklineProcess(title, await launchTrunkline(args, settings, program));
  }

  /** Where its state is unless its settings say otherwise. */
  get stateDir(): string {
    return join(this.#child.folder, ".trunkline");
  }

  get processId(): number | undefined {
    return this.#child.processId;
  }

  get ended(): boolean {
    return this.#child.ended;
  }

  stdout(): Promise<string> {
    return this.#child.stdout();
  }

  stderr(): Promise<string> {
    return this.#child.stderr();
  }

  async logLines(): Promise<LogLine[]> {
    const lines = (await this.stderr()).split("\n").filter((line) => line.startsWith("{"));
    return lines.map((line) => logLine.parse(JSON.parse(line)));
  }

  /** The first line of its log that begins with this, as soon as there is one. */
  logged(message: string): Promise<LogLine> {
    const look = async () => (await this.logLines()).find(({ msg }) => msg.startsWith(message));
    return this.#whileRunning(look, `log "${message}"`);
  }

  /** Its standard output, as soon as that has a match. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    const look = async () => pattern.exec(await this.stdout());
    return this.#whileRunning(look, `print ${pattern}`);
  }

  /** SIGKILL: gone at once, as in a crash. */
  kill(): Promise<void> {
    return this.#child.kill();
  }

  /** SIGSTOP: its connections stay open and it does nothing. */
  freeze(): Promise<void> {
    return this.#child.freeze();
  }

  /** SIGCONT: goes on where it was frozen. */
  thaw(): Promise<void> {
    return this.#child.thaw();
  }

  /** The exit code of a process that ends by itself, or the name of the signal that ended it. */
  async exit(): Promise<number | string> {
    await until(() => this.ended, { what: `${this.title} to end`, timeoutMs: stopTimeoutMs, intervalMs: 10 });
    return this.#child.exit();
  }

  /** Asks it to stop and comes back at once. */
  askToStop(signal: "SIGTERM" | "SIGINT" | "SIGHUP" = "SIGTERM"): void {
    this.#child.signal(signal);
  }

  /** Asks it to stop and waits for its exit code, or the name of the signal that ended it. */
  async terminate(signal: "SIGTERM" | "SIGINT" | "SIGHUP" = "SIGTERM"): Promise<number | string> {
    this.#child.signal(signal);
    const what = `${this.title} to end after ${signal}`;
    await until(() => this.ended, { what, timeoutMs: stopTimeoutMs, intervalMs: 10 });
    return this.#child.exit();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await endShowing(this.#witness);
    await this.#child[Symbol.asyncDispose]();
  }

  async #whileRunning<T extends object>(look: () => Promise<T | null | undefined>, what: string): Promise<T> {
    let why = `${this.title} ended before it could ${what}`;
    try {
      const options = { what: `${this.title} to ${what}`, timeoutMs: startTimeoutMs, intervalMs: 10 };
      const seen = await until(async () => (await look()) ?? (this.ended && "ended"), options);
      if (seen !== "ended") return seen;
    } catch (error) {
      why = error instanceof Error ? error.message : String(error);
    }
    throw new Error(`${why}; it said:\n${await this.stderr()}`);
  }
}
