import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/**
 * Runs the stop steps of a process in reverse order of their start. A stop step gets a signal that aborts at the
 * deadline. Until then it may wait for work under way; after that it must cut the work off.
 */
export class Lifecycle {
  readonly #steps: { name: string; stop: (deadline: AbortSignal) => Promise<void> | void }[] = [];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #failed = Promise.withResolvers<Error>();
  #draining: Promise<void> | undefined;

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

  get draining(): boolean {
    return this.#draining !== undefined;
  }

  onStop(name: string, stop: (deadline: AbortSignal) => Promise<void> | void): void {
    this.#steps.push({ name, stop });
  }

  /** Runs all stop steps once; a second call waits for the first. A failing step is logged and the rest still run. */
  stop(deadlineMs: number): Promise<void> {
    this.#draining ??= this.#stopAll(deadlineMs);
    return this.#draining;
  }

  async #stopAll(deadlineMs: number): Promise<void> {
    const deadline = new AbortController();
    const timer = this.#clock.after(deadlineMs, () => deadline.abort());
    for (const { name, stop } of this.#steps.toReversed()) {
      try {
        await stop(deadline.signal);
      } catch (error) {
        this.#log.error({ err: error, step: name }, "a part did not stop cleanly");
      }
    }
    timer.cancel();
  }
}

/** Resolves at SIGINT, SIGTERM or the given signal; a second SIGINT or SIGTERM ends the process at once. */
export function untilToldToStop(signal?: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const stop = (reason: string): void => {
      for (const name of ["SIGINT", "SIGTERM"] as const) {
        process.removeAllListeners(name);
        process.once(name, () => process.exit(130));
      }
      resolve(reason);
    };
    process.once("SIGINT", () => stop("SIGINT"));
    process.once("SIGTERM", () => stop("SIGTERM"));
    signal?.addEventListener("abort", () => stop(String(signal.reason)), { once: true });
  });
}
