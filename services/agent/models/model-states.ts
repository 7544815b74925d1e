import type { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { RuntimeWatch } from "./watch-runtimes.ts";

/** One model, in memory or on its way there. */
interface ModelState {
  /** The runtime that had it in memory when the runtimes were looked at last. */
  seenOn: Runtime | undefined;
  /** True if this agent had its runtime load it, which then does not let go of it by itself. */
  isOurs: boolean;
  /** True while this agent takes it out of memory. */
  isLeaving: boolean;
  /** The time until which it stays out of memory although it is kept, since somebody else took it out. */
  suspendedUntilMs: number;
  /** Why it could not be loaded, and until when that refuses its requests. */
  failure: { readonly fault: Fault; readonly untilMs: number; readonly times: number } | undefined;
}

/** How long a model that could not be loaded is not tried again: twice as long after each failure. */
const failureStandsMs = 5_000;
const failureStandsMaxMs = 300_000;

/** For how long a model stays out of memory that somebody else took out of it. */
const suspendedMs = 600_000;

/** A runtime that did not answer within this time before its models left the memory was restarted. */
const restartWithinMs = 10_000;

/**
 * The models that the site keeps in this machine's memory, and what happened to each model there. A kept model that somebody
 * else unloads is left alone for a while: the owner of a machine has the last word. A restart of its runtime is nobody's wish.
 */
export class ModelStates {
  /** The models that the site wants in memory. */
  kept: readonly string[] = [];
  readonly #options: { readonly runtime: RuntimeWatch; readonly clock: Pick<Clock, "now"> };
  readonly #states = new Map<string, ModelState>();

  constructor(options: { readonly runtime: RuntimeWatch; readonly clock: Pick<Clock, "now"> }) {
    this.#options = options;
  }

  keep(models: readonly string[]): void {
    this.kept = models;
    for (const [id, state] of this.#states) if (!models.includes(id)) state.suspendedUntilMs = -Infinity;
  }

  /** True if a model is to be in memory now although no request waits for it. */
  isKept(id: string): boolean {
    return this.kept.includes(id) && this.suspendedForMs(id) === 0;
  }

  suspendedForMs(id: string): number {
    return Math.max(0, this.of(id).suspendedUntilMs - this.#options.clock.now());
  }

  /** Returns why requests for a model are refused: it could not be loaded lately. */
  failureOf(id: string): Fault | undefined {
    const { failure } = this.of(id);
    return failure !== undefined && failure.untilMs > this.#options.clock.now() ? failure.fault : undefined;
  }

  loaded(id: string): void {
    const state = this.of(id);
    state.isOurs = true;
    state.failure = undefined;
  }

  leaving(id: string): void {
    this.of(id).isLeaving = true;
  }

  /** Notes that a model could not be loaded. Returns how often in a row, and for how long it is not tried again. */
  failed(id: string, fault: Fault): { readonly times: number; readonly standsMs: number } {
    const state = this.of(id);
    const times = (state.failure?.times ?? 0) + 1;
    const standsMs = Math.min(failureStandsMaxMs, failureStandsMs * 2 ** (times - 1));
    state.failure = { fault, untilMs: this.#options.clock.now() + standsMs, times };
    return { times, standsMs };
  }

  /** Notes which models are in memory. Returns how many of them somebody else took out of it. */
  look(): number {
    const { runtime, clock } = this.#options;
    const { served = [] } = runtime.offer ?? {};
    const loadedOn = new Map(served.filter(({ model }) => model.loaded).map((each) => [each.model.id, each.runtime]));
    let taken = 0;
    for (const [id, state] of this.#states) {
      const { seenOn } = state;
      if (seenOn === undefined || loadedOn.has(id)) continue;
      const isAway = !served.some((each) => each.runtime === seenOn);
      const isRestart = isAway || clock.now() - runtime.silentAtMs(seenOn) < restartWithinMs;
      if (!state.isLeaving && !isRestart) {
        taken += 1;
        if (this.kept.includes(id)) state.suspendedUntilMs = clock.now() + suspendedMs;
      }
      state.seenOn = undefined;
      state.isOurs = state.isLeaving = false;
    }
    for (const [id, on] of loadedOn) this.of(id).seenOn = on;
    return taken;
  }

  of(id: string): ModelState {
    return this.#states.getOrInsertComputed(id, () => ({
      seenOn: undefined,
      isOurs: false,
      isLeaving: false,
      suspendedUntilMs: -Infinity,
      failure: undefined,
    }));
  }
}
