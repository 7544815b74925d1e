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

/** Limits the machines whose last fault is kept, and those whose claims to be busy are. */
const machinesMax = 2_000;
/** Number of consecutive contradicted presences after which a machine is asked last. */
export const contradictionsMax = 3;

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

interface BusyClaim {
  /** True if the machine said busy since its latest presence. */
  isBusy: boolean;
  /** Presences that reported a free slot and were followed by a busy, without an accepted job in between. */
  contradictions: number;
  untilMs: number;
}

/**
 * Knows the models that a machine is asked for last, until one request after a while succeeds: those that fail all the time
 * there, and those for which it refused jobs as busy although its presences reported a free slot. The machine read each such
 * job for nothing. One that other gateways filled meanwhile does so once, and its next presence reports it. No request is
 * refused for it, since a machine that may fail is better than none.
 */
export class Breakers {
  readonly #timing: Pick<Timing, "breakerOpenMs">;
  readonly #breakers = new LRUCache<string, Breaker>({ max: breakersMax });
  /** The claims to be busy by machine, then by model. */
  readonly #claims = new LRUCache<string, Map<string, BusyClaim>>({ max: machinesMax, memoMethod: () => new Map() });
  /** The last fault by machine. */
  readonly #lastFaults = new LRUCache<string, LastFault>({ max: machinesMax });

  constructor(timing: Pick<Timing, "breakerOpenMs">) {
    this.#timing = timing;
  }

  /** Returns why a model is asked last on a machine just now. */
  avoids(machine: string, model: string, nowMs: number): "breaker" | "contradicts" | undefined {
    const breaker = this.#breakers.get(nameOf(machine, model));
    if (breaker !== undefined && breaker.failures >= failuresMax && nowMs < breaker.openUntilMs) return "breaker";
    const claim = this.#claims.get(machine)?.get(model);
    return claim !== undefined && nowMs < claim.untilMs ? "contradicts" : undefined;
  }

  /** True from a contradicting busy until the next presence. Until then the busy is the machine's latest report. */
  isBusy(machine: string, model: string): boolean {
    return this.#claims.get(machine)?.get(model)?.isBusy ?? false;
  }

  /** Returns the models of a machine that are asked last just now, by the reason. */
  avoidedOn(machine: string, nowMs: number): { readonly broken: string[]; readonly contradicted: string[] } {
    const failed = [...this.#breakers.keys()].filter((name) => name.startsWith(nameOf(machine, "")));
    const models = failed.map((name) => name.slice(nameOf(machine, "").length));
    const claims = [...(this.#claims.get(machine) ?? [])];
    return {
      broken: models.filter((model) => this.avoids(machine, model, nowMs) === "breaker"),
      contradicted: claims.flatMap(([model, { untilMs }]) => (nowMs < untilMs ? [model] : [])),
    };
  }

  /** Notes that a machine accepted a job. */
  took(machine: string, model: string): void {
    const claims = this.#claims.get(machine);
    claims?.delete(model);
    if (claims?.size === 0) this.#claims.delete(machine);
  }

  /** Notes a busy that contradicts a reported free slot. True if the machine now did so `contradictionsMax` times. */
  contradicted(machine: string, model: string, nowMs: number): boolean {
    const none = { isBusy: false, contradictions: 0, untilMs: 0 };
    const claim = this.#claims.memo(machine).getOrInsert(model, none);
    if (claim.isBusy) return false;
    claim.isBusy = true;
    claim.contradictions += 1;
    if (claim.contradictions >= contradictionsMax) claim.untilMs = nowMs + this.#timing.breakerOpenMs;
    return claim.contradictions === contradictionsMax;
  }

  /** Called when a presence of the machine arrives and reports its load anew. */
  reported(machine: string): void {
    for (const claim of this.#claims.get(machine)?.values() ?? []) claim.isBusy = false;
  }

  /** Returns the last fault of a job on a machine, for operators. */
  lastFaultOn(machine: string): LastFault | undefined {
    return this.#lastFaults.get(machine);
  }

  /** Notes that a request goes to a machine. While it runs it is the only probe. */
  placed(machine: string, model: string, nowMs: number): void {
    const breaker = this.#breakers.get(nameOf(machine, model));
    if (breaker !== undefined && breaker.failures >= failuresMax) {
      breaker.openUntilMs = nowMs + this.#timing.breakerOpenMs;
    }
  }

  worked(machine: string, model: string): void {
    this.#breakers.delete(nameOf(machine, model));
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
