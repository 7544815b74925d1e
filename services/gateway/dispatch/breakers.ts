import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/** So many failures one after the other open a breaker. */
const failuresMax = 5;
/** Breakers are kept for so many models of machines; only those are kept that failed lately. */
const breakersMax = 2_000;

/** What is a machine's own failure: not a request that was wrong, a client that left, or too much work at once. */
const ownFaults: ReadonlySet<FaultCode> = new Set([
  "upstream_error",
  "runtime_offline",
  "upstream_timeout",
  "agent_disconnected",
  "internal_error",
]);

interface Breaker {
  failures: number;
  /** Until then the model of the machine comes last; afterwards one request at a time is the probe. */
  openUntilMs: number;
}

/**
 * Which models of which machines fail all the time: those are asked last until one request after a while shows that they
 * work again. Nobody is refused for it, since a machine that may fail is better than none.
 */
export class Breakers {
  readonly #timing: Timing;
  readonly #breakers = new Map<string, Breaker>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  avoids(machine: string, model: string, nowMs: number): boolean {
    if (this.#breakers.size === 0) return false;
    const breaker = this.#breakers.get(nameOf(machine, model));
    return breaker !== undefined && breaker.failures >= failuresMax && nowMs < breaker.openUntilMs;
  }

  /** The models of a machine that are asked last just now. */
  avoidedOn(machine: string, nowMs: number): readonly string[] {
    const names = [...this.#breakers.keys()].filter((name) => name.startsWith(nameOf(machine, "")));
    const models = names.map((name) => name.slice(nameOf(machine, "").length));
    return models.filter((model) => this.avoids(machine, model, nowMs));
  }

  /** A request goes there: while it runs it is the only probe. */
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

  /** Tells whether this was the failure that opened the breaker. What is no fault of the machine changes nothing. */
  failed(machine: string, model: string, failure: { readonly code: FaultCode; readonly nowMs: number }): boolean {
    if (!ownFaults.has(failure.code)) return false;
    const name = nameOf(machine, model);
    const breaker = this.#breakers.get(name) ?? { failures: 0, openUntilMs: 0 };
    this.#breakers.delete(name);
    for (const oldest of this.#breakers.keys()) {
      if (this.#breakers.size < breakersMax) break;
      this.#breakers.delete(oldest);
    }
    breaker.failures += 1;
    breaker.openUntilMs = failure.nowMs + this.#timing.breakerOpenMs;
    this.#breakers.set(name, breaker);
    return breaker.failures === failuresMax;
  }
}

function nameOf(machine: string, model: string): string {
  return `${machine} ${model}`;
}
