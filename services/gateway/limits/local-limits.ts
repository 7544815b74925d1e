import type { KeyLimits } from "#shared/keys/key-limits.ts";
import type { Clock } from "#shared/process/clock.ts";
import { judgeDemand, standingOf, waitMsOf } from "./judge-demand.ts";
import {
  budgetPeriodAt,
  type Admission,
  type AloneGrants,
  type Demand,
  type GrantedAlone,
  type Hold,
  type Limits,
  type Settled,
  type Standing,
} from "./limits.ts";
import { LocalKey } from "./local-key.ts";
import { windowMs } from "./rate.ts";
import { shareOf } from "./share-of.ts";

interface LocalLimitsOptions {
  readonly clock: Pick<Clock, "now" | "wall">;
  /** The number of gateways that share every limit. */
  readonly gateways?: () => number;
  /**
   * Returns the tokens that a key used of its budget in a period, if the store has not reported them. `admit` reads
   * this in the same synchronous step that decides.
   */
  readonly spent: (keyId: string, period: string) => number;
}

/** The interval between two searches for keys that can be forgotten. */
const forgetEveryMs = windowMs;

/**
 * Limits in the memory of this gateway. They serve the only gateway that there is, or one gateway's share while the
 * shared store is unavailable. Every decision is one synchronous step.
 */
export class LocalLimits implements Limits, AloneGrants {
  readonly #clock: Pick<Clock, "now" | "wall">;
  readonly #gateways: () => number;
  readonly #spent: (keyId: string, period: string) => number;
  readonly #keys = new Map<string, LocalKey>();
  readonly #untold = new Map<string, KeyLimits>();
  #forgotAtMs = 0;

  constructor(options: LocalLimitsOptions) {
    this.#clock = options.clock;
    this.#gateways = options.gateways ?? (() => 1);
    this.#spent = options.spent;
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#keys.size;
  }

  admit(demand: Demand): Admission {
    const { keyId, limits, seat, tokens } = demand;
    const { spent, endsInMs } = this.#budgetOf(demand);
    const share = this.#shareOf(limits, spent);
    const state = { ...this.#stateOf(keyId, share), spent };
    const verdict = judgeDemand(tokens, share, state);
    if (verdict.outcome === "refuse") {
      const { by } = verdict;
      const waitMs = waitMsOf({ by, tokens, limits: share, used: state, budgetEndsInMs: endsInMs });
      return { outcome: "refused", by, waitMs, standing: standingOf(share, state) };
    }
    const hold: Hold = {
      keyId,
      limits,
      seat,
      tokens: verdict.tokens,
      budgetTokens: verdict.budgetTokens,
      kept: "here",
    };
    this.adopt(hold);
    this.#untold.set(keyId, limits);
    return { outcome: "admitted", hold, standing: standingOf(share, this.#stateOf(keyId, share)) };
  }

  async standing({ keyId, limits }: Pick<Demand, "keyId" | "limits">): Promise<Standing> {
    const share = this.#shareOf(limits);
    return standingOf(share, this.#stateOf(keyId, share));
  }

  /** Counts a hold that the shared store admitted, so that this gateway does not grant its share a second time. */
  adopt(hold: Hold): void {
    this.#forgetIdle();
    const key = this.#keys.getOrInsertComputed(hold.keyId, () => new LocalKey());
    key.take(this.#clock.now(), this.#shareOf(hold.limits), hold);
  }

  /** Records the budget use of all gateways, as their store just reported it. The share divides only what is left. */
  learn({ keyId, limits }: Pick<Demand, "keyId" | "limits">, spent: number): void {
    if (limits.budget === undefined) return;
    const period = budgetPeriodAt(limits.budget.per, this.#clock.wall());
    this.#keys.getOrInsertComputed(keyId, () => new LocalKey()).learn(period, spent);
  }

  /** Settles a request that was admitted or adopted here. A second call for the same hold changes nothing. */
  settle(settled: Settled): void {
    const { keyId, limits } = settled.hold;
    this.#keys.get(keyId)?.settle(this.#clock.now(), this.#shareOf(limits), settled);
    if (settled.hold.kept === "here" && this.#keys.has(keyId)) this.#untold.set(keyId, limits);
  }

  get untold(): ReadonlyMap<string, KeyLimits> {
    return this.#untold;
  }

  tellAlone(keyId: string): GrantedAlone | undefined {
    const [limits, key] = [this.#untold.get(keyId), this.#keys.get(keyId)];
    if (limits === undefined || key === undefined) return undefined;
    this.#untold.delete(keyId);
    const [nowMs, share] = [this.#clock.now(), this.#shareOf(limits)];
    const granted = key.aloneAt(nowMs, share);
    key.tell(nowMs, share, granted);
    return granted;
  }

  untellAlone(keyId: string, limits: KeyLimits, { requests, tokens }: GrantedAlone): void {
    const share = this.#shareOf(limits);
    this.#keys.get(keyId)?.tell(this.#clock.now(), share, { requests: -requests, tokens: -tokens });
    this.#untold.set(keyId, limits);
  }

  #stateOf(keyId: string, share: KeyLimits): ReturnType<LocalKey["stateAt"]> {
    return (this.#keys.get(keyId) ?? new LocalKey()).stateAt(this.#clock.now(), share);
  }

  #budgetOf({ keyId, limits }: Demand): { readonly spent: number; readonly endsInMs: number } {
    if (limits.budget === undefined) return { spent: 0, endsInMs: 0 };
    const wallMs = this.#clock.wall();
    const { name, endsAtMs } = budgetPeriodAt(limits.budget.per, wallMs);
    const learned = this.#keys.get(keyId)?.spentIn(name);
    return { spent: learned ?? this.#spent(keyId, name), endsInMs: endsAtMs - wallMs };
  }

  #shareOf(limits: KeyLimits, spent = 0): KeyLimits {
    return shareOf(limits, this.#gateways(), spent);
  }

  #forgetIdle(): void {
    const nowMs = this.#clock.now();
    if (nowMs - this.#forgotAtMs < forgetEveryMs) return;
    this.#forgotAtMs = nowMs;
    const wallMs = this.#clock.wall();
    for (const [id, key] of this.#keys) {
      if (!key.isIdleAt(nowMs, wallMs)) continue;
      this.#keys.delete(id);
      this.#untold.delete(id);
    }
  }
}
