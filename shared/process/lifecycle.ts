import { systemClock, type Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/** Exit codes for scripts; the numbers follow sysexits. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 64,
  unavailable: 69,
  cannotCreate: 73,
  config: 78,
} as const;

/** A failed start or command, explained to a person in one line that names the remedy. */
export class StartFailure extends Error {
  override readonly name = "StartFailure";
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Interval at which a process looks whether the npm that started it still runs. */
const npmLookMs = 250;

/**
 * Runs a long-running process until a signal, until the npm that started it has ended, or until a part fails. That
 * part's error is thrown after the stop. Work under way may finish within `drainMs`; a second signal ends the process
 * at once. A failed start stops all started parts.
 */
export async function runUntilStopped(options: {
  readonly environment: Readonly<NodeJS.ProcessEnv>;
  readonly drainMs: number;
  readonly log: Log;
  readonly start: (lifecycle: Lifecycle) => Promise<void>;
  /** Called when the process begins to stop, before any part is stopped. */
  readonly onStopping?: () => void;
}): Promise<void> {
  const { environment, drainMs, log, start } = options;
  const lifecycle = new Lifecycle({ clock: systemClock, log });
  const stopRequested = untilStopRequested(watchNpm({ environment, lifecycle, clock: systemClock }));
  try {
    await start(lifecycle);
  } catch (error) {
    await lifecycle.stop(0);
    throw error;
  }
  const reason = await Promise.race([stopRequested, lifecycle.failed]);
  options.onStopping?.();
  if (reason instanceof Error) log.error({ reason: reason.message, drainMs }, "stopping");
  else log.info({ reason, drainMs }, "stopping");
  await lifecycle.stop(drainMs);
  log.info("stopped");
  if (reason instanceof Error) throw reason;
}

/**
 * Runs the stop steps of a process in reverse order of their start. A stop step gets a signal that aborts at the
 * deadline. Until then it may wait for work under way; after that it must cut the work off.
 */
export class Lifecycle {
  readonly #steps: { name: string; stop: (deadline: AbortSignal) => Promise<void> | void }[] = [];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #failed = Promise.withResolvers<Error>();
  #stopping: Promise<void> | undefined;
  /** True from the beginning of the stop on. */
  draining = false;

  constructor(options: { clock: Clock; log: Log }) {
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Resolves with the reason when a part cannot go on. The owner of the process must then stop it. */
  get failed(): Promise<Error> {
    return this.#failed.promise;
  }

  fail(reason: Error): void {
    this.#failed.resolve(reason);
  }

  onStop(name: string, stop: (deadline: AbortSignal) => Promise<void> | void): void {
    this.#steps.push({ name, stop });
  }

  /** Runs all stop steps once; a second call waits for the first. A failing step is logged and the rest still run. */
  async stop(deadlineMs: number): Promise<void> {
    const deadline = new AbortController();
    const timer = this.#clock.after(deadlineMs, () => deadline.abort());
    await this.stopBy(deadline.signal);
    timer.cancel();
  }

  /** Stops as a part of another lifecycle, by whose deadline it cuts work off. */
  stopBy(deadline: AbortSignal): Promise<void> {
    this.draining = true;
    this.#stopping ??= this.#runSteps(deadline);
    return this.#stopping;
  }

  async #runSteps(deadline: AbortSignal): Promise<void> {
    for (const { name, stop } of this.#steps.toReversed()) {
      try {
        await stop(deadline);
      } catch (error) {
        this.#log.error({ err: error, step: name }, "a part did not stop cleanly");
      }
    }
  }
}

/** Windows sends SIGBREAK for Ctrl-Break, which is also how a supervisor there stops a service. */
const stopSignals = ["SIGINT", "SIGTERM", "SIGBREAK"] as const;

/**
 * Resolves at a stop signal, when the terminal is closed, or at the given signal. A second stop signal ends the process
 * at once. A terminal may report its end more than once, and Windows then ends the process within ten seconds.
 */
export function untilStopRequested(signal?: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const stop = (reason: string): void => {
      for (const name of stopSignals) {
        process.removeAllListeners(name);
        process.once(name, () => process.exit(130));
      }
      resolve(reason);
    };
    for (const name of stopSignals) process.once(name, () => stop(name));
    process.on("SIGHUP", () => resolve("SIGHUP"));
    signal?.addEventListener("abort", () => stop(String(signal.reason)), { once: true });
  });
}

/**
 * Returns a signal that aborts when the npm that started this process has ended. `npm start` and npx start a shell, and
 * the shell starts this process. A signal to npm ends those two but never reaches this process, so a restart would find
 * it still running. On Windows a console signals all its processes, and no process gets another parent.
 */
export function watchNpm(options: {
  readonly environment: Readonly<NodeJS.ProcessEnv>;
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  readonly parent?: () => number;
  readonly platform?: string;
}): AbortSignal {
  const { environment, lifecycle, clock, parent = () => process.ppid, platform = process.platform } = options;
  const gone = new AbortController();
  if (!isStartedByNpm(environment) || platform === "win32") return gone.signal;
  const first = parent();
  const watch = clock.every(npmLookMs, () => {
    if (parent() !== first) gone.abort("npm has gone");
  });
  lifecycle.onStop("npm", () => watch.cancel());
  return gone.signal;
}

/**
 * Returns true if npm started this process itself, by a script of this package or as npx. A script of another package may
 * detach it on purpose.
 */
function isStartedByNpm(environment: Readonly<NodeJS.ProcessEnv>): boolean {
  const { npm_package_name: name, npm_lifecycle_event: event, npm_lifecycle_script: script = "" } = environment;
  if (event === "npx") return /^["']?trunkline["']?$/.test(script);
  return name === "trunkline" && (event === "start" || event === "trunkline");
}
