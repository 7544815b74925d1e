import { Fault } from "#shared/fault/fault.ts";
import { within } from "#shared/process/clock.ts";
import type { AgentContext } from "../context.ts";
import type { DescribedModel, Runtime } from "../runtimes/runtime.ts";
import type { RuntimeSource, LookResult } from "./detect.ts";

/** The state of a runtime as the agent's own jobs show it. */
export interface RuntimeWork {
  readonly running: boolean;
  /** The time at which a running job last received a piece of its answer; -Infinity before the first. */
  readonly heardAtMs: number;
}

interface WatchSourceOptions extends AgentContext {
  readonly source: RuntimeSource;
  readonly workOn: (runtime: Runtime) => RuntimeWork;
}

/** Failures in a row after which the runtime is gone; a single failure may be a busy moment. */
const failuresMax = 2;

/** Polls that pass before a runtime that answers is recognised again. */
const pollsBetweenFinds = 30;

/**
 * Bounds the polls skipped at a location that has no runtime: one may appear later, but other servers are not polled
 * often.
 */
const pollsSkippedMax = 30;

/**
 * Watches one location where a runtime may be. It adopts a runtime that appears there, lists its models, and drops it when
 * it no longer answers. No other object owns this state.
 */
export class SourceWatch {
  readonly #options: WatchSourceOptions;
  #runtime: Runtime | undefined;
  #models: readonly DescribedModel[] | undefined;
  #failures = 0;
  /** When a look was last not answered. */
  silentAtMs = -Infinity;
  #pollsToSkip = 0;
  #pollsSkipped = 0;
  #pollsSinceFound = 0;
  #otherKind: string | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: WatchSourceOptions) {
    this.#options = options;
  }

  get location(): string {
    return this.#options.source.location;
  }

  /** The runtime that answers here and its models; undefined while there is none. */
  get found(): { readonly runtime: Runtime; readonly models: readonly DescribedModel[] } | undefined {
    const [runtime, models] = [this.#runtime, this.#models];
    return runtime === undefined || models === undefined ? undefined : { runtime, models };
  }

  /** True if the last poll was answered. A runtime that failed once may still be offered without being healthy. */
  get answersNow(): boolean {
    return this.found !== undefined && this.#failures === 0;
  }

  /**
   * Polls the location once; concurrent callers share the poll. A caller waits for `runtimeAnswerMs` at most. The answer
   * of a slower runtime counts when it comes, and until then the last known list stands.
   */
  async look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    await this.#within(this.#options.timing.runtimeAnswerMs, async () => this.#looking).catch(() => undefined);
  }

  async #look(): Promise<void> {
    const { timing, log } = this.#options;
    if (this.found?.runtime.unknownKind && this.#work().running) return;
    try {
      await this.#findAnew();
      const runtime = this.#runtime;
      if (runtime === undefined) return;
      this.#models = await this.#within(timing.runtimeSilentMs, (signal) => runtime.catalogue(signal));
      this.#failures = 0;
    } catch (error) {
      this.silentAtMs = this.#options.clock.now();
      const { reason } = Fault.from(error);
      if (this.#jobsFlow()) {
        log.debug(
          { reason, place: this.location },
          "the runtime did not list its models; its jobs flow, so the last list stands",
        );
        return;
      }
      this.#failures = error instanceof RuntimeSilence ? failuresMax : this.#failures + 1;
      log.debug({ reason, place: this.location, failures: this.#failures }, "the runtime did not list its models");
      if (this.#failures >= failuresMax) this.#models = undefined;
    }
  }

  #work(): RuntimeWork {
    const { workOn } = this.#options;
    return this.#runtime === undefined ? { running: false, heardAtMs: -Infinity } : workOn(this.#runtime);
  }

  #jobsFlow(): boolean {
    const { clock, timing } = this.#options;
    return clock.now() - this.#work().heardAtMs < timing.runtimeSilentMs;
  }

  async close(): Promise<void> {
    await this.#runtime?.close?.();
  }

  /** Finds a runtime, or recognises a known one again now and then: a location may change its kind between two looks. */
  async #findAnew(): Promise<void> {
    this.#pollsSinceFound += 1;
    if (this.#runtime === undefined || this.#failures >= failuresMax) return this.#find();
    if (this.#failures === 0 && this.#pollsSinceFound < pollsBetweenFinds) return undefined;
    return this.#recogniseAgain();
  }

  /**
   * Recognises the runtime again. A busy server may be hard to recognise, so a new kind counts only when seen twice in
   * a row.
   */
  async #recogniseAgain(): Promise<void> {
    const { source, timing } = this.#options;
    const look = this.#within(timing.runtimeAnswerMs, (signal) => source.look(signal));
    const sight = await look.catch((): LookResult => "nothing");
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
   * Adopts a found runtime. A known runtime of the same kind is kept, because what it has learnt of its models makes
   * the next look quicker. A runtime that is slow to describe many models would otherwise never finish.
   */
  #adopt(found: Runtime): void {
    const spare = this.#runtime?.name === found.name ? found : this.#runtime;
    if (spare !== found) this.#runtime = found;
    if (spare !== this.#runtime) void spare?.close?.().catch(() => undefined);
  }

  /** Rejects after `limitMs`, even if the adapter ignores its signal: otherwise one hung look would be the last. */
  #within<Answer>(limitMs: number, ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    return within(this.#options.clock, limitMs, () => new RuntimeSilence(limitMs), ask);
  }
}

/** A request to the runtime that was not answered in time. */
class RuntimeSilence extends Fault {
  constructor(limitMs: number) {
    super("runtime_offline", { message: `The runtime did not answer within ${limitMs} ms.` });
  }
}
