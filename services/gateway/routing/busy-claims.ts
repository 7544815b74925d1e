import { LRUCache } from "lru-cache";
import type { Timing } from "#shared/protocol/timing.ts";

/** Number of consecutive contradicted presences after which a machine is asked last. */
export const contradictionsMax = 3;
/** Limits the machines whose claims are kept. */
const machinesMax = 2_000;

interface BusyClaim {
  /** True if the machine said busy since its latest presence. */
  isBusy: boolean;
  /** Presences that reported a free slot and were followed by a busy, without an accepted job in between. */
  contradictions: number;
  untilMs: number;
}

/**
 * Detects machines that refuse a job as busy although their latest presence reported a free slot. The machine read each
 * such job for nothing. A machine that other gateways filled meanwhile does so once, and its next presence reports it.
 */
export class BusyClaims {
  readonly #timing: Pick<Timing, "breakerOpenMs">;
  /** The claims by machine, then by model. */
  readonly #claims = new LRUCache<string, Map<string, BusyClaim>>({ max: machinesMax, memoMethod: () => new Map() });

  constructor(timing: Pick<Timing, "breakerOpenMs">) {
    this.#timing = timing;
  }

  /** Notes a busy that contradicts a reported free slot. True if the machine now did so `contradictionsMax` times. */
  contradicted(machine: string, model: string, nowMs: number): boolean {
    const claim = this.#claims.memo(machine).getOrInsertComputed(model, () => ({
      isBusy: false,
      contradictions: 0,
      untilMs: 0,
    }));
    if (claim.isBusy) return false;
    claim.isBusy = true;
    claim.contradictions += 1;
    if (claim.contradictions >= contradictionsMax) claim.untilMs = nowMs + this.#timing.breakerOpenMs;
    return claim.contradictions === contradictionsMax;
  }

  took(machine: string, model: string): void {
    const claims = this.#claims.get(machine);
    claims?.delete(model);
    if (claims?.size === 0) this.#claims.delete(machine);
  }

  /** Called when a presence of the machine arrives and reports its load anew. */
  reported(machine: string): void {
    for (const claim of this.#claims.get(machine)?.values() ?? []) claim.isBusy = false;
  }

  /** True from a contradicting busy until the next presence. Until then the busy is the machine's latest report. */
  isBusy(machine: string, model: string): boolean {
    return this.#claims.get(machine)?.get(model)?.isBusy ?? false;
  }

  /** True while the model is asked last there, because the machine contradicted itself too often. */
  avoids(machine: string, model: string, nowMs: number): boolean {
    const claim = this.#claims.get(machine)?.get(model);
    return claim !== undefined && nowMs < claim.untilMs;
  }

  /** Returns the models of a machine that are asked last just now because of its contradictions. */
  avoidedOn(machine: string, nowMs: number): readonly string[] {
    return [...(this.#claims.get(machine)?.keys() ?? [])].filter((model) => this.avoids(machine, model, nowMs));
  }
}
