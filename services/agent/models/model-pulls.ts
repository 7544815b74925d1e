import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { ManageProgress } from "#shared/protocol/job-bodies.ts";
import { type PullFacts, pullsMax } from "#shared/protocol/presence.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Runtime } from "../runtimes/runtime.ts";

interface PullOptions {
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/** A pull that is under way, or has ended lately. */
interface Pull {
  progress: ManageProgress;
  readonly stop: AbortController;
  readonly listeners: Set<(progress: ManageProgress) => void>;
  ended: Promise<void>;
  endedAtMs: number | undefined;
  fault: Fault | undefined;
}

const beginning: ManageProgress = { status: "beginning" };

/** How long a pull that has ended is told of. */
const toldForMs = 600_000;

/**
 * Pulls models. A pull belongs to the machine: it goes on when those who asked for it leave, and whoever asks for the
 * same model joins it.
 */
export class ModelPulls {
  readonly #options: PullOptions;
  readonly #pulls = new Map<string, Pull>();

  constructor(options: PullOptions) {
    this.#options = options;
  }

  /** Pulls a model, or joins its pull. Resolves when the model is there, and rejects with the fault of the pull. */
  async pull(
    model: string,
    runtime: Pick<Runtime, "manages">,
    { signal, onProgress }: { readonly signal?: AbortSignal; readonly onProgress?: (progress: ManageProgress) => void },
  ): Promise<void> {
    const known = this.#pulls.get(model);
    const pull = known === undefined || known.endedAtMs !== undefined ? this.#begin(model, runtime) : known;
    if (onProgress === undefined) return pull.ended;
    if (pull.progress !== beginning) onProgress(pull.progress);
    pull.listeners.add(onProgress);
    signal?.addEventListener("abort", () => pull.listeners.delete(onProgress), { once: true });
    return pull.ended;
  }

  /** Stops a pull, for all who wait for it. Returns false if there is none. */
  stop(model: string): boolean {
    const pull = this.#pulls.get(model);
    if (pull === undefined || pull.endedAtMs !== undefined) return false;
    pull.stop.abort(new Fault("cancelled", { message: `The pull of '${model}' was stopped.` }));
    return true;
  }

  /** Returns the pull of a model that is under way or has ended lately. */
  find(model: string): PullFacts | undefined {
    this.#forgetOld();
    const pull = this.#pulls.get(model);
    return pull && factsOf(model, pull);
  }

  /** Returns the pulls under way and those that ended lately, the latest first. */
  told(): PullFacts[] {
    this.#forgetOld();
    return [...this.#pulls]
      .toReversed()
      .slice(0, pullsMax)
      .map(([model, pull]) => factsOf(model, pull));
  }

  /** Stops all pulls: the agent ends. */
  close(): void {
    for (const model of this.#pulls.keys()) this.stop(model);
  }

  #forgetOld(): void {
    const nowMs = this.#options.clock.now();
    for (const [model, { endedAtMs }] of this.#pulls) {
      if (endedAtMs !== undefined && nowMs - endedAtMs > toldForMs) this.#pulls.delete(model);
    }
  }

  #begin(model: string, { manages }: Pick<Runtime, "manages">): Pull {
    const { timing, clock, log } = this.#options;
    const run = manages?.pull;
    if (run === undefined)
      throw new Fault("unsupported_value", { message: "This machine cannot pull.", param: "action" });
    const stop = new AbortController();
    let heardAtMs = clock.now();
    const watch = clock.every(timing.beatIntervalMs, () => {
      const { manageSilentMs } = timing;
      const message = `The runtime told nothing of the pull for ${manageSilentMs} ms (manageSilentMs).`;
      if (clock.now() - heardAtMs > manageSilentMs) stop.abort(new Fault("upstream_timeout", { message }));
    });
    const onProgress = (progress: ManageProgress): void => {
      heardAtMs = clock.now();
      pull.progress = progress;
      for (const listener of pull.listeners) listener(progress);
    };
    const aborted = new Promise<never>((_, reject) => {
      stop.signal.addEventListener("abort", () => reject(stop.signal.reason), { once: true });
    });
    const begun = { listeners: new Set<never>(), ended: aborted, endedAtMs: undefined, fault: undefined };
    const pull: Pull = { ...begun, progress: beginning, stop };
    this.#pulls.delete(model);
    this.#pulls.set(model, pull);
    pull.ended = Promise.race([run({ action: "pull", model, signal: stop.signal, onProgress }), aborted]).then(
      () => this.#ended(model, undefined),
      (error: unknown) => {
        const fault = Fault.from(stop.signal.aborted ? stop.signal.reason : error);
        this.#ended(model, fault);
        throw fault;
      },
    );
    pull.ended.catch(() => undefined).finally(() => watch.cancel());
    log.info({ model }, "a model is pulled");
    return pull;
  }

  #ended(model: string, fault: Fault | undefined): void {
    const { clock, log } = this.#options;
    const pull = this.#pulls.get(model);
    if (pull === undefined) return;
    pull.endedAtMs = clock.now();
    pull.fault = fault;
    pull.listeners.clear();
    if (fault === undefined) log.info({ model }, "a model was pulled");
    else log.warn({ model, code: fault.code, cause: fault.reason ?? fault.message }, "a pull has failed");
  }
}

/** Bounds the text of a pull's state in presence. */
const statusCharactersMax = 100;

function factsOf(model: string, { progress, endedAtMs, fault }: Pull): PullFacts {
  const { status, completedBytes = 0, totalBytes = 0 } = progress;
  const text = endedAtMs === undefined ? status : (fault?.message ?? "done");
  return {
    model,
    state: endedAtMs === undefined ? "pulling" : fault === undefined ? "done" : "failed",
    status: text.slice(0, statusCharactersMax),
    // In steps, so that a download does not make gateways read each presence anew.
    ...(totalBytes > 0 && {
      percent: Math.floor((100 * completedBytes) / totalBytes),
      totalMb: Math.ceil(totalBytes / 1e6),
    }),
  };
}
