import { createHash } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import type { Catalogue } from "#shared/model/model.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Runtime } from "./runtime.ts";

interface WatchOptions {
  /** Looks for a runtime; called again and again until there is one. */
  readonly find: () => Promise<Runtime | undefined>;
  /** Whether a runtime only stands in for one that is still looked for. */
  readonly isStandIn: (runtime: Runtime) => boolean;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Offer {
  readonly runtime: Runtime;
  readonly catalogue: Catalogue;
  /** Changes whenever the catalogue does. */
  readonly digest: string;
}

/** One failure may be a busy moment; as many in a row mean that the runtime is gone. */
const failuresMax = 2;

/**
 * Knows the runtime that this agent fronts and what it offers just now: adopts one when it appears, asks it for its
 * catalogue at a steady pace, and lets go of it when it no longer answers. The only owner of that knowledge.
 */
export class RuntimeWatch {
  readonly #options: WatchOptions;
  readonly #listeners = new Set<() => void>();
  #offer: Offer | undefined;
  #runtime: Runtime | undefined;
  #failures = 0;
  #asking: Promise<void> | undefined;
  #timer: Timer | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  get offer(): Offer | undefined {
    return this.#offer;
  }

  /** Tells of every change of the offer. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Resolves after the first look, whether or not there is a runtime. */
  async start(): Promise<void> {
    await this.#ask();
    this.#timer = this.#options.clock.every(this.#options.timing.cataloguePollMs, () => void this.#ask());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** The catalogue as the runtime tells it now, or the fault `runtime_offline`. Callers at the same time share one look. */
  async ask(): Promise<Catalogue> {
    await this.#ask();
    if (this.#offer === undefined || this.#failures > 0) {
      throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
    }
    return this.#offer.catalogue;
  }

  #ask(): Promise<void> {
    this.#asking ??= this.#look().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #look(): Promise<void> {
    const { find, timing, log } = this.#options;
    try {
      if (this.#runtime === undefined || this.#failures >= failuresMax || this.#options.isStandIn(this.#runtime)) {
        this.#adopt(await this.#within(timing.runtimeAnswerMs, () => find()));
      }
      const runtime = this.#runtime;
      if (runtime === undefined) return;
      const catalogue = await this.#within(timing.runtimeAnswerMs, (signal) => runtime.catalogue(signal));
      this.#failures = 0;
      this.#take({ runtime, catalogue, digest: digestOf(catalogue) });
    } catch (error) {
      this.#failures += 1;
      log.debug({ err: error, failures: this.#failures }, "the runtime did not tell its catalogue");
      if (this.#failures < failuresMax) return;
      this.#take(undefined);
    }
  }

  /**
   * Of the same kind, the one that is known is kept: what it has learnt of its models so far makes the next look quicker,
   * and a runtime that is slow to describe many models would otherwise never come to the end of them.
   */
  #adopt(found: Runtime | undefined): void {
    if (found === undefined) return;
    const spare = this.#runtime?.name === found.name ? found : this.#runtime;
    if (spare !== found) this.#runtime = found;
    void spare?.close?.().catch(() => undefined);
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

  #take(offer: Offer | undefined): void {
    const before = this.#offer;
    this.#offer = offer;
    if (before?.digest === offer?.digest && before?.runtime === offer?.runtime) return;
    const { log } = this.#options;
    if (offer === undefined) log.warn("the runtime no longer answers; this machine offers nothing until it does");
    else log.info({ runtime: offer.runtime.name, models: offer.catalogue.length }, "the catalogue of this machine");
    for (const listener of this.#listeners) listener();
  }
}

function digestOf(catalogue: Catalogue): string {
  return createHash("sha256").update(JSON.stringify(catalogue)).digest("hex").slice(0, 24);
}
