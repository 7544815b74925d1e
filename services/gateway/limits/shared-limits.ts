import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { needsSeat, type Admission, type Demand, type Hold, type Limits, type Standing } from "./limits.ts";
import type { LocalLimits } from "./local-limits.ts";

interface SharedLimitsOptions {
  /** What all gateways see. */
  readonly shared: Limits;
  /** This gateway's share. */
  readonly local: LocalLimits;
  /** A hold that may have been made by a question that went unanswered: it is to be released as soon as can be. */
  readonly onUncertain: (hold: Hold) => void;
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "info" | "warn">;
  /** For how long after a failure the store is left alone. */
  readonly retryMs?: number;
}

const defaultRetryMs = 1_000;

/**
 * The limits of all gateways together, or this one's share of them while their store does not answer: no request fails
 * for want of an answer, and none is let through uncounted. The share is told of all that the store admits, so that it
 * is true from the first request on that needs it. Whether a hold is the store's or the share's, it says itself.
 */
export class SharedLimits implements Limits {
  readonly #options: SharedLimitsOptions;
  readonly #retryMs: number;
  /** While the store is away: when one request may ask it again. */
  #askAgainAtMs: number | undefined;

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
    this.#retryMs = options.retryMs ?? defaultRetryMs;
  }

  admit(demand: Demand): Admission | Promise<Admission> {
    const wasAway = this.#isAway;
    if (!this.#mayAsk()) return this.#options.local.admit(demand);
    const admission = this.#options.shared.admit(demand);
    return admission instanceof Promise ? this.#heard(demand, admission, wasAway) : this.#admitted(demand, admission);
  }

  async #heard(demand: Demand, asked: Promise<Admission>, wasAway: boolean): Promise<Admission> {
    const { local, onUncertain } = this.#options;
    let admission;
    try {
      admission = await asked;
    } catch (error) {
      this.#unanswered(error);
      if (needsSeat(demand.limits)) onUncertain(uncertainHold(demand));
      return local.admit(demand);
    }
    if (wasAway) this.#answered();
    return this.#admitted(demand, admission);
  }

  /** As the store has said. */
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

  /** It was asked while it was away. */
  #answered(): void {
    if (!this.#isAway) return;
    this.#askAgainAtMs = undefined;
    this.#options.log.info("the limits of keys hold over all gateways again");
  }

  /** A bug is not an outage. */
  #unanswered(error: unknown): void {
    const { clock, log } = this.#options;
    if (!(error instanceof Fault && error.code === "backend_unavailable")) throw error;
    if (!this.#isAway) {
      log.warn({ internal: error.internal }, "limits cannot be shared now; this gateway grants its share of them");
    }
    this.#askAgainAtMs = clock.now() + this.#retryMs;
  }
}

/** It is not known what it holds of the budget; its seat says so to the store. */
function uncertainHold({ keyId, limits, seat }: Demand): Hold {
  return { keyId, limits, seat, tokens: 0, budgetTokens: 0, kept: "shared" };
}
