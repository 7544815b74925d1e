import type { KeyLimits } from "#shared/keys/key-limits.ts";
import type { Clock } from "#shared/process/clock.ts";
import { judgeDemand, standingOf, waitMsOf } from "./judge-demand.ts";
import {
  budgetPeriodAt,
  type Admission,
  type Demand,
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
  /** Among how many gateways every limit is divided. */
  readonly gateways?: () => number;
  /** What a key has used of its budget in a period, where nobody told. Read in the very step that decides. */
  readonly spent: (keyId: string, period: string) => number;
}

/** How often keys are looked for of which nothing needs to be known any more. */
const forgetEveryMs = windowMs;

/**
 * Limits in the memory of this gateway: for the only gateway that there is, and for each one's share of them while the
 * store that all of them see is away. Every decision is one synchronous step.
 */
export class LocalLimits implements Limits {
  readonly #clock: Pick<Clock, "now" | "wall">;
  readonly #gateways: () => number;
  readonly #spent: (keyId: string, period: string) => number;
  readonly #keys = new Map<string, LocalKey>();
  #forgotAtMs = 0;

  constructor(options: LocalLimitsOptions) {
    this.#clock = options.clock;
    this.#gateways = options.gateways ?? (() => 1);
    this.#spent = options.spent;
  }

  /** How many keys anything is known of. */
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
    return { outcome: "admitted", hold, standing: standingOf(share, this.#stateOf(keyId, share)) };
  }

  async standing({ keyId, limits }: Pick<Demand, "keyId" | "limits">): Promise<Standing> {
    const share = this.#shareOf(limits);
    return standingOf(share, this.#stateOf(keyId, share));
  }

  /** Counts what all gateways' store has admitted, so that this one's share is not handed out a second time. */
  adopt(hold: Hold): void {
    this.#forgetIdle();
    const key = this.#keys.getOrInsertComputed(hold.keyId, () => new LocalKey());
    key.take(this.#clock.now(), this.#shareOf(hold.limits), hold);
  }

  /** What all gateways together have used of a key's budget, as their store just said: the share is of what is left. */
  learn({ keyId, limits }: Pick<Demand, "keyId" | "limits">, spent: number): void {
    if (limits.budget === undefined) return;
    const period = budgetPeriodAt(limits.budget.per, this.#clock.wall());
    this.#keys.getOrInsertComputed(keyId, () => new LocalKey()).learn(period, spent);
  }

  /** To be told of the end of all that was admitted or adopted here; a second time it is nothing new. */
  settle(settled: Settled): void {
    const { keyId, limits } = settled.hold;
    this.#keys.get(keyId)?.settle(this.#clock.now(), this.#shareOf(limits), settled);
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
    for (const [id, key] of this.#keys) if (key.isIdleAt(nowMs, wallMs)) this.#keys.delete(id);
  }
}
