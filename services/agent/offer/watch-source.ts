import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { DescribedModel, Runtime } from "../runtimes/runtime.ts";
import type { RuntimeSource, Sight } from "./runtime-source.ts";

interface WatchOptions {
  readonly source: RuntimeSource;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/** One failure may be a busy moment; as many in a row mean that the runtime is gone. */
const failuresMax = 2;

/** How many polls pass before a runtime that answers is recognised anew. */
const pollsBetweenFinds = 30;

/** What is no runtime at one look may be one later, but is not to be pestered: at most so many polls pass between. */
const pollsSkippedMax = 30;

/**
 * One place at which a runtime may be: adopts the one that appears there, asks it for its models, and lets go of it when
 * it no longer answers. The only owner of that knowledge.
 */
export class SourceWatch {
  readonly #options: WatchOptions;
  #runtime: Runtime | undefined;
  #models: readonly DescribedModel[] | undefined;
  #failures = 0;
  #pollsToSkip = 0;
  #pollsSkipped = 0;
  #pollsSinceFound = 0;
  #otherKind: string | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  get place(): string {
    return this.#options.source.place;
  }

  /** The runtime that answers here and what it offers; nothing while there is none. */
  get found(): { readonly runtime: Runtime; readonly models: readonly DescribedModel[] } | undefined {
    const [runtime, models] = [this.#runtime, this.#models];
    return runtime === undefined || models === undefined ? undefined : { runtime, models };
  }

  /** Whether the last question was answered: a runtime that has failed once may still be offered, but not be well. */
  get answersNow(): boolean {
    return this.found !== undefined && this.#failures === 0;
  }

  /** One look. Whoever asks while one is under way shares it. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { timing, log } = this.#options;
    try {
      await this.#findAnew();
      const runtime = this.#runtime;
      if (runtime === undefined) return;
      this.#models = await this.#within(timing.runtimeAnswerMs, (signal) => runtime.catalogue(signal));
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      log.debug({ err: error, place: this.place, failures: this.#failures }, "the runtime did not tell its models");
      if (this.#failures >= failuresMax) this.#models = undefined;
    }
  }

  async close(): Promise<void> {
    await this.#runtime?.close?.();
  }

  /** A place may change its kind between two looks, so a runtime that is known is recognised again now and then. */
  async #findAnew(): Promise<void> {
    this.#pollsSinceFound += 1;
    if (this.#runtime === undefined || this.#failures >= failuresMax) return this.#find();
    if (this.#failures === 0 && this.#pollsSinceFound < pollsBetweenFinds) return undefined;
    return this.#recogniseAgain();
  }

  /** A server that is busy may be hard to recognise, so another kind has to be seen twice in a row to be believed. */
  async #recogniseAgain(): Promise<void> {
    const { source, timing } = this.#options;
    const look = this.#within(timing.runtimeAnswerMs, (signal) => source.look(signal));
    const sight = await look.catch((): Sight => "nothing");
    this.#pollsSinceFound = 0;
    if (typeof sight === "string") return;
    if (sight.name === this.#runtime?.name || sight.name === this.#otherKind) {
      this.#otherKind = undefined;
      this.#adopt(sight);
      return;
    }
    this.#otherKind = sight.name;
    this.#pollsSinceFound = pollsBetweenFinds;
    await sight.close?.();
  }

  async #find(): Promise<void> {
    if (this.#pollsSkipped < this.#pollsToSkip) {
      this.#pollsSkipped += 1;
      return;
    }
    const { source, timing } = this.#options;
    const sight = await this.#within(timing.runtimeAnswerMs, (signal) => source.look(signal));
    this.#pollsSkipped = 0;
    this.#pollsSinceFound = 0;
    const mayAskAgain = sight !== "something-else" || this.#runtime !== undefined;
    this.#pollsToSkip = mayAskAgain ? 0 : Math.min(this.#pollsToSkip * 2 + 1, pollsSkippedMax);
    if (typeof sight !== "string") this.#adopt(sight);
  }

  /**
   * Of the same kind, the one that is known is kept: what it has learnt of its models so far makes the next look quicker,
   * and a runtime that is slow to describe many models would otherwise never come to the end of them.
   */
  #adopt(found: Runtime): void {
    const spare = this.#runtime?.name === found.name ? found : this.#runtime;
    if (spare !== found) this.#runtime = found;
    if (spare !== this.#runtime) void spare?.close?.().catch(() => undefined);
  }

  /** The limit holds also for an adapter that does not heed its signal, or one hung look would be the last. */
  async #within<Answer>(limitMs: number, ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const late = new AbortController();
    const { promise: lateness, reject } = Promise.withResolvers<never>();
    const timer = this.#options.clock.after(limitMs, () => {
      const reason = new Error(`the runtime did not answer within ${limitMs} ms (runtimeAnswerMs)`);
      late.abort(reason);
      reject(reason);
    });
    try {
      return await Promise.race([ask(late.signal), lateness]);
    } finally {
      timer.cancel();
    }
  }
}
