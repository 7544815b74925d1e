import type { Clock } from "#shared/process/clock.ts";
import type { KeepFacts } from "#shared/protocol/presence.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { ServedModel } from "./model-set.ts";

/** For how long a model stays out of memory that somebody else took out of it. */
const suspendedMs = 600_000;

/** A runtime that did not answer within this time before its models left the memory was restarted. */
const restartWithinMs = 10_000;

interface KeptOptions {
  /** Returns when a runtime last did not answer. */
  readonly silentAtMs: (runtime: Runtime) => number;
  readonly clock: Pick<Clock, "now">;
}

/**
 * The models that the site wants in this machine's memory. A model that somebody else unloads is left alone for a while:
 * the owner of a machine has the last word. A restart of its runtime is nobody's wish.
 */
export class KeptModels {
  readonly #options: KeptOptions;
  #kept: readonly string[] = [];
  readonly #suspendedUntilMs = new Map<string, number>();
  /** The models in memory, as they were seen last, and those of them that this agent loaded. */
  #seen = new Map<string, Runtime>();
  readonly #ours = new Set<string>();
  /** The models that this agent is taking out of memory. */
  readonly #leaving = new Set<string>();

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  get names(): readonly string[] {
    return this.#kept;
  }

  keep(models: readonly string[]): void {
    this.#kept = models;
    for (const id of this.#suspendedUntilMs.keys()) if (!models.includes(id)) this.#suspendedUntilMs.delete(id);
  }

  /** True if a model is to be in memory now. */
  isWanted(id: string): boolean {
    return this.#kept.includes(id) && this.#suspendedForMs(id) === 0;
  }

  /** True if a runtime may let go of a kept model by itself: this agent has not asked it to hold the model. */
  isLoose(id: string): boolean {
    return this.isWanted(id) && this.#seen.has(id) && !this.#ours.has(id);
  }

  loaded(id: string): void {
    this.#ours.add(id);
  }

  unloading(id: string): void {
    this.#leaving.add(id);
  }

  /** Called whenever the runtimes were looked at. Returns the number of models that somebody else took out of memory. */
  seen(served: readonly ServedModel[]): number {
    const nowMs = this.#options.clock.now();
    const loaded = served.filter(({ model }) => model.loaded === true);
    const now = new Map(loaded.map(({ model, runtime }) => [model.id, runtime]));
    const runtimes = new Set(served.map(({ runtime }) => runtime));
    let taken = 0;
    for (const [id, runtime] of this.#seen) {
      if (now.has(id)) continue;
      const isOurs = this.#leaving.delete(id);
      this.#ours.delete(id);
      const isRestart = !runtimes.has(runtime) || nowMs - this.#options.silentAtMs(runtime) < restartWithinMs;
      if (isOurs || isRestart) continue;
      taken += 1;
      if (this.#kept.includes(id)) this.#suspendedUntilMs.set(id, nowMs + suspendedMs);
    }
    this.#seen = now;
    return taken;
  }

  /** Returns how each kept model is; `why` says why one is not in memory, as far as others know. */
  told(why: (id: string) => Pick<KeepFacts, "state" | "why">): KeepFacts[] {
    return this.#kept.map((model) => {
      const leftMs = this.#suspendedForMs(model);
      if (this.#seen.has(model)) return { model, state: "loaded" };
      if (leftMs === 0) return { model, ...why(model) };
      const minutes = Math.ceil(leftMs / 60_000);
      return { model, state: "suspended", why: `somebody unloaded it; it comes back in ${minutes} min` };
    });
  }

  #suspendedForMs(id: string): number {
    return Math.max(0, (this.#suspendedUntilMs.get(id) ?? 0) - this.#options.clock.now());
  }
}
