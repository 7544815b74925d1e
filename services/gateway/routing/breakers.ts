import { LRUCache } from "lru-cache";
import { faultEntry, type FaultCode } from "#shared/fault/fault.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/** Number of consecutive failures that open a breaker. */
const failuresMax = 5;
/** Limits the breakers, one for each model of a machine. Only those that failed lately are kept. */
const breakersMax = 2_000;

/** Faults that count against a machine. An invalid request, a client that disconnected and an overload do not. */
const ownFaults: ReadonlySet<FaultCode> = new Set([
  "upstream_error",
  "runtime_offline",
  "upstream_timeout",
  "agent_disconnected",
  "internal_error",
]);

/** Limits the machines whose last fault is kept. */
const lastFaultsMax = 2_000;

interface LastFault {
  readonly code: FaultCode;
  readonly model: string;
  readonly reason?: string | undefined;
  readonly nowMs: number;
}

interface Breaker {
  failures: number;
  /** Until this time the model is asked last on this machine. Afterwards one request at a time is the probe. */
  openUntilMs: number;
}

/**
 * Knows the models that fail all the time on a machine. They are asked last until one request after a while succeeds.
 * No request is refused for it, since a machine that may fail is better than none.
 */
export class Breakers {
  readonly #timing: Timing;
  readonly #breakers = new LRUCache<string, Breaker>({ max: breakersMax });
  /** The last fault by machine. */
  readonly #lastFaults = new LRUCache<string, LastFault>({ max: lastFaultsMax });

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  avoids(machine: string, model: string, nowMs: number): boolean {
    if (this.#breakers.size === 0) return false;
    const breaker = this.#breakers.get(nameOf(machine, model));
    return breaker !== undefined && breaker.failures >= failuresMax && nowMs < breaker.openUntilMs;
  }

  /** Returns the models of a machine that are asked last just now. */
  avoidedOn(machine: string, nowMs: number): readonly string[] {
    const names = [...this.#breakers.keys()].filter((name) => name.startsWith(nameOf(machine, "")));
    const models = names.map((name) => name.slice(nameOf(machine, "").length));
    return models.filter((model) => this.avoids(machine, model, nowMs));
  }

  /** Returns the last fault of a job on a machine, for operators. */
  lastFaultOn(machine: string): LastFault | undefined {
    return this.#lastFaults.get(machine);
  }

  /** Notes that a request goes to a machine. While it runs it is the only probe. */
  placed(machine: string, model: string, nowMs: number): void {
    if (this.#breakers.size === 0) return;
    const breaker = this.#breakers.get(nameOf(machine, model));
    if (breaker !== undefined && breaker.failures >= failuresMax) {
      breaker.openUntilMs = nowMs + this.#timing.breakerOpenMs;
    }
  }

  worked(machine: string, model: string): void {
    if (this.#breakers.size > 0) this.#breakers.delete(nameOf(machine, model));
  }

  /** Counts a failure. True if it opened the breaker. A fault that is not the machine's own changes no breaker. */
  failed(
    machine: string,
    model: string,
    failure: { readonly code: FaultCode; readonly nowMs: number; readonly reason?: string | undefined },
  ): boolean {
    if (faultEntry(failure.code).status >= 500) this.#lastFaults.set(machine, { ...failure, model });
    if (!ownFaults.has(failure.code)) return false;
    const name = nameOf(machine, model);
    const breaker = this.#breakers.get(name) ?? { failures: 0, openUntilMs: 0 };
    breaker.failures += 1;
    breaker.openUntilMs = failure.nowMs + this.#timing.breakerOpenMs;
    this.#breakers.set(name, breaker);
    return breaker.failures === failuresMax;
  }
}

function nameOf(machine: string, model: string): string {
  return `${machine} ${model}`;
}
