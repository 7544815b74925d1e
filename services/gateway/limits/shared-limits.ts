import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { needsSeat, type Admission, type Demand, type Hold, type Limits, type Standing } from "./limits.ts";
import type { LocalLimits } from "./local-limits.ts";

interface SharedLimitsOptions {
  /** The limits in the store that all gateways share. */
  readonly shared: Limits;
  /** This gateway's share of the limits. */
  readonly local: LocalLimits;
  /** Releases, as soon as possible, a hold that the store may have made although its answer did not arrive. */
  readonly onUncertain: (hold: Hold) => void;
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "info" | "warn">;
  /** After a failure the store is not asked for this long. */
  readonly retryMs?: number;
}

const defaultRetryMs = 1_000;

/**
 * The limits of all gateways together, or this gateway's share of them while their store does not answer. No request
 * fails because the store is unavailable, and none runs uncounted. The share counts every admission of the store, so
 * that it is correct when the first request needs it. `Hold.kept` says which of the two made a hold.
 */
export class SharedLimits implements Limits {
  readonly #options: SharedLimitsOptions;
  readonly #retryMs: number;
  /** The time from which one request may ask the unavailable store again. Undefined while the store answers. */
  #askAgainAtMs: number | undefined;

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
    this.#retryMs = options.retryMs ?? defaultRetryMs;
  }

  admit(demand: Demand): Admission | Promise<Admission> {
    const wasAway = this.#isAway;
    if (!this.#mayAsk()) return this.#ownShare(demand);
    const admission = this.#options.shared.admit(demand);
    return admission instanceof Promise ? this.#heard(demand, admission, wasAway) : this.#admitted(demand, admission);
  }

  async #heard(demand: Demand, asked: Promise<Admission>, wasAway: boolean): Promise<Admission> {
    const { onUncertain } = this.#options;
    let admission;
    try {
      admission = await asked;
    } catch (error) {
      this.#unanswered(error);
      if (needsSeat(demand.limits)) onUncertain(uncertainHold(demand));
      return this.#ownShare(demand);
    }
    if (wasAway) this.#answered();
    return this.#admitted(demand, admission);
  }

  #ownShare(demand: Demand): Admission {
    const admission = this.#options.local.admit(demand);
    return admission.outcome === "refused" ? { ...admission, isProvisional: true } : admission;
  }

  /** Records the store's admission in this gateway's share. */
  #admitted(demand: Demand, admission: Admission): Admission {
    const { local } = this.#options;
    if (admission.outcome === "admitted") local.adopt(admission.hold);
    if (admission.spent !== undefined) local.learn(demand, admission.spent);
    return admission;
  }

  async standing(key: Pick<Demand, "keyId" | "limits">): Promise<Standing> {
    const { shared, local } = this.#options;
    const wasAway = this.#isAway;
    if (!this.#mayAsk()) return local.standing(key);
    let standing;
    try {
      standing = await shared.standing(key);
    } catch (error) {
      this.#unanswered(error);
      return local.standing(key);
    }
    if (wasAway) this.#answered();
    return standing;
  }

  get #isAway(): boolean {
    return this.#askAgainAtMs !== undefined;
  }

  #mayAsk(): boolean {
    if (this.#askAgainAtMs === undefined) return true;
    const nowMs = this.#options.clock.now();
    if (nowMs < this.#askAgainAtMs) return false;
    this.#askAgainAtMs = nowMs + this.#retryMs;
    return true;
  }

  /** Ends the outage, after an answer to a question that was asked during the outage. */
  #answered(): void {
    if (!this.#isAway) return;
    this.#askAgainAtMs = undefined;
    this.#options.log.info("the limits of keys hold over all gateways again");
  }

  /** Begins or prolongs the outage. Throws any other error: a bug is not an outage. */
  #unanswered(error: unknown): void {
    const { clock, log } = this.#options;
    if (!(error instanceof Fault && error.code === "backend_unavailable")) throw error;
    if (!this.#isAway) {
      log.warn({ internal: error.internal }, "limits cannot be shared now; this gateway grants its share of them");
    }
    this.#askAgainAtMs = clock.now() + this.#retryMs;
  }
}

/** Returns a hold with zero tokens: its part of the budget is unknown here, and the store finds it by the seat. */
function uncertainHold({ keyId, limits, seat }: Demand): Hold {
  return { keyId, limits, seat, tokens: 0, budgetTokens: 0, kept: "shared" };
}
