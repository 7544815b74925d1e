import { Fault } from "#shared/fault/fault.ts";
import type { StateStore } from "#shared/keys/open-key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { needsSeat } from "./judge-demand.ts";
import type { Admission, Demand, Limits, LimitStatus } from "./limits.ts";
import { LocalLimits } from "./local-limits.ts";
import { RedisLimitsBook } from "./redis-limits.ts";
import { Settlements } from "./settlements.ts";
import { SqliteLimitsBook } from "./sqlite-limits.ts";

interface LimitsOptions {
  /** The token of this boot of this gateway. */
  readonly gateway: string;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn" | "error">;
}

export interface OpenedLimits {
  readonly limits: Limits;
  readonly settlements: Settlements;
}

/**
 * Opens the book of limits beside the keys themselves. It is in Redis for all gateways together, or in this process and
 * its database for the only gateway.
 */
export function openLimits(state: StateStore, options: LimitsOptions): OpenedLimits {
  return state.kind === "redis" ? openShared(state.redis, options) : openEmbedded(state.database, options);
}

function openShared(redis: Extract<StateStore, { kind: "redis" }>["redis"], options: LimitsOptions): OpenedLimits {
  const { clock } = options;
  const book = new RedisLimitsBook(redis, { clock });
  const local: LocalLimits = new LocalLimits({
    clock,
    gateways: () => settlements.gateways,
    // Read for keys that this gateway never asked Redis about. For all others, the last answer of Redis reported the
    // spent tokens.
    spent: (keyId, period) => settlements.spentOf(keyId, period),
  });
  const settlements: Settlements = new Settlements({ ...options, book, local });
  return { limits: new SharedLimits({ book, local, settlements }), settlements };
}

function openEmbedded(
  database: Extract<StateStore, { kind: "sqlite" }>["database"],
  options: LimitsOptions,
): OpenedLimits {
  const book: SqliteLimitsBook = new SqliteLimitsBook(database, {
    clock: options.clock,
    unbooked: (keyId, period) => settlements.spentOf(keyId, period),
  });
  const settlements: Settlements = new Settlements({ ...options, book, local: book.local });
  return { limits: book, settlements };
}

interface SharedLimitsOptions {
  /** The limits that all gateways share. */
  readonly book: Limits;
  /** This gateway's share of the limits. */
  readonly local: LocalLimits;
  readonly settlements: Pick<Settlements, "isAway" | "away" | "release" | "sendEnded">;
}

/**
 * The limits of all gateways together, or this gateway's share of them while their book does not answer. No request
 * fails because the book is unavailable, and none runs uncounted. The share counts every admission of the book, so that
 * it is correct when the first request needs it. `Hold.kept` says which of the two made a hold.
 */
export class SharedLimits implements Limits {
  readonly #options: SharedLimitsOptions;

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
  }

  admit(demand: Demand): Admission | Promise<Admission> {
    return this.#options.settlements.isAway ? this.#ownShare(demand) : this.#ask(demand);
  }

  async limitStatus(key: Pick<Demand, "keyId" | "limits">): Promise<LimitStatus> {
    const { book, local, settlements } = this.#options;
    if (settlements.isAway) return local.limitStatus(key);
    try {
      return await book.limitStatus(key);
    } catch (error) {
      this.#away(error);
      return local.limitStatus(key);
    }
  }

  async #ask(demand: Demand): Promise<Admission> {
    const { book, local, settlements } = this.#options;
    let admission;
    settlements.sendEnded();
    try {
      admission = await book.admit(demand);
    } catch (error) {
      this.#away(error);
      const { keyId, limits, seat } = demand;
      // The part of the budget that it may have reserved is unknown here; the book finds it by the seat.
      const uncertain = { keyId, limits, seat, tokens: 0, budgetTokens: 0, kept: "shared" } as const;
      if (needsSeat(limits)) settlements.release(uncertain);
      return this.#ownShare(demand);
    }
    if (admission.outcome === "admitted") local.adopt(admission.hold);
    if (admission.spent !== undefined) local.learn(demand, admission.spent);
    return admission;
  }

  #ownShare(demand: Demand): Admission {
    const admission = this.#options.local.admit(demand);
    return admission.outcome === "refused" ? { ...admission, isProvisional: true } : admission;
  }

  /** Throws any error but an unavailable book: a bug is not an outage. */
  #away(error: unknown): void {
    if (!(error instanceof Fault && error.code === "backend_unavailable")) throw error;
    this.#options.settlements.away(error);
  }
}
