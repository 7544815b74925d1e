import { Fault } from "#shared/fault/fault.ts";
import { untilAborted } from "#shared/process/clock.ts";
import type { ManageProgress } from "#shared/protocol/job-bodies.ts";
import { type PullFacts, pullsMax } from "#shared/protocol/presence.ts";
import type { AgentContext } from "../context.ts";
import type { ManageRun } from "../runtimes/runtime.ts";

type Pulling = (run: ManageRun) => Promise<void>;
type Listener = (progress: ManageProgress) => void;

/** A pull that is under way, or has ended lately. */
interface Pull {
  progress: ManageProgress | undefined;
  pace: Pace | undefined;
  readonly stop: AbortController;
  readonly listeners: Set<Listener>;
  ended: Promise<void>;
  endedAtMs: number | undefined;
  fault: Fault | undefined;
}

/** The speed of a download since its first bytes. A model of several files has one download after the other. */
interface Pace {
  readonly totalBytes: number;
  readonly fromBytes: number;
  readonly sinceMs: number;
  readonly percent: number;
  readonly leftMs?: number;
}

/** How long a pull that has ended is told of. */
const toldForMs = 600_000;

/**
 * Pulls models. A pull belongs to the machine: it goes on when those who asked for it leave, and whoever asks for the
 * same model joins it.
 */
export class ModelPulls {
  readonly #options: AgentContext;
  readonly #pulls = new Map<string, Pull>();

  constructor(options: AgentContext) {
    this.#options = options;
  }

  /** Pulls a model, or joins its pull. Resolves when the model is there, and rejects with the fault of the pull. */
  pull(
    model: string,
    run: Pulling,
    client?: { readonly signal: AbortSignal; readonly onProgress: Listener },
  ): Promise<void> {
    const known = this.#pulls.get(model);
    const pull = known === undefined || known.endedAtMs !== undefined ? this.#begin(model, run) : known;
    if (client !== undefined) {
      const { signal, onProgress } = client;
      if (pull.progress !== undefined) onProgress(pull.progress);
      pull.listeners.add(onProgress);
      signal.addEventListener("abort", () => pull.listeners.delete(onProgress), { once: true });
    }
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
    return this.#known().find((each) => each.model === model);
  }

  /** Returns the pulls under way and those that ended lately, the latest first. */
  told(): PullFacts[] {
    return this.#known().toReversed().slice(0, pullsMax);
  }

  /** Stops all pulls: the agent ends. */
  close(): void {
    for (const model of this.#pulls.keys()) this.stop(model);
  }

  #known(): PullFacts[] {
    const nowMs = this.#options.clock.now();
    for (const [model, { endedAtMs = nowMs }] of this.#pulls)
      if (nowMs - endedAtMs > toldForMs) this.#pulls.delete(model);
    return [...this.#pulls].map(([model, pull]) => factsOf(model, pull));
  }

  #begin(model: string, run: Pulling): Pull {
    const pull: Pull = {
      progress: undefined,
      pace: undefined,
      stop: new AbortController(),
      listeners: new Set(),
      ended: Promise.resolve(),
      endedAtMs: undefined,
      fault: undefined,
    };
    this.#pulls.delete(model);
    this.#pulls.set(model, pull);
    pull.ended = this.#run(model, run, pull);
    // The agent itself follows no pull that it begins.
    pull.ended.catch(() => undefined);
    return pull;
  }

  async #run(model: string, run: Pulling, pull: Pull): Promise<void> {
    const { timing, clock, log } = this.#options;
    const { beatIntervalMs, manageSilentMs } = timing;
    const { signal } = pull.stop;
    let heardAtMs = clock.now();
    const watch = clock.every(beatIntervalMs, () => {
      const message = `The runtime told nothing of the pull for ${manageSilentMs} ms (manageSilentMs).`;
      if (clock.now() - heardAtMs > manageSilentMs) pull.stop.abort(new Fault("upstream_timeout", { message }));
    });
    const onProgress = (progress: ManageProgress): void => {
      heardAtMs = clock.now();
      pull.progress = progress;
      pull.pace = paceOf(pull.pace, progress, heardAtMs);
      for (const listener of pull.listeners) listener(progress);
    };
    log.info({ model }, "a model is pulled");
    try {
      await untilAborted(signal, run({ action: "pull", model, signal, onProgress }));
      log.info({ model }, "a model was pulled");
    } catch (error) {
      const fault = Fault.from(signal.aborted ? signal.reason : error);
      pull.fault = fault;
      log.warn({ model, code: fault.code, cause: fault.reason ?? fault.message }, "a pull has failed");
      throw fault;
    } finally {
      pull.endedAtMs = clock.now();
      pull.listeners.clear();
      watch.cancel();
    }
  }
}

/** Bounds the text of a pull's state in presence. */
const statusCharactersMax = 100;

/** Returns the pace of a download. The time left changes only with the percent, so that presences stay the same. */
function paceOf(before: Pace | undefined, { completedBytes = 0, totalBytes = 0 }: ManageProgress, nowMs: number): Pace {
  const percent = Math.floor((100 * completedBytes) / Math.max(1, totalBytes));
  if (before?.totalBytes !== totalBytes) return { totalBytes, fromBytes: completedBytes, sinceMs: nowMs, percent };
  if (before.percent === percent) return before;
  const msPerByte = (nowMs - before.sinceMs) / Math.max(1, completedBytes - before.fromBytes);
  return { ...before, percent, leftMs: Math.round(msPerByte * (totalBytes - completedBytes)) };
}

function factsOf(model: string, { progress = { status: "beginning" }, pace, endedAtMs, fault }: Pull): PullFacts {
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
      ...(endedAtMs === undefined && pace?.leftMs !== undefined && { leftMs: pace.leftMs }),
    }),
  };
}
