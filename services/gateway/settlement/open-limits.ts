import type { StateStore } from "#shared/keys/open-key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { RedisBooks } from "./redis-books.ts";
import { Settlements } from "./settlements.ts";
import { SqliteBooks } from "./sqlite-books.ts";
import type { Hold, Limits } from "../limits/limits.ts";
import { LocalLimits } from "../limits/local-limits.ts";
import { PlacesAhead } from "../limits/places-ahead.ts";
import { RedisLimits } from "../limits/redis-limits.ts";
import { SharedLimits } from "../limits/shared-limits.ts";

interface Means {
  /** The token of this boot of this gateway. */
  readonly gateway: string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface OpenedLimits {
  readonly limits: Limits;
  readonly settlements: Settlements;
  /** Writes all ends that were gathered, until the deadline aborts. */
  stop(deadline: AbortSignal): Promise<void>;
}

/**
 * Opens the limits of keys, and the books of the ends of their requests, beside the keys themselves. They are in Redis
 * for all gateways together, or in this process and its database for the only gateway.
 */
export function openLimits(state: StateStore, means: Means): OpenedLimits {
  return state.kind === "redis" ? openShared(state.redis, means) : openEmbedded(state.database, means);
}

function openShared(redis: Extract<StateStore, { kind: "redis" }>["redis"], means: Means): OpenedLimits {
  const { clock, log } = means;
  const local: LocalLimits = new LocalLimits({
    clock,
    gateways: () => settlements.gateways,
    // Read for keys that this gateway never asked Redis about. For all others, the last answer of Redis reported the
    // spent tokens.
    spent: (keyId, period) => settlements.spentOf(keyId, period),
  });
  const settlements: Settlements = new Settlements({ ...means, books: new RedisBooks(redis), limits: local });
  const onUncertain = (hold: Hold): void => settlements.release(hold);
  const ahead = new PlacesAhead({
    store: new RedisLimits(redis, { clock, endings: settlements, alone: local }),
    giveBack: (hold) => settlements.giveBack(hold),
    onUncertain,
    clock,
  });
  const limits = new SharedLimits({ shared: ahead, local, onUncertain, clock, log });
  const stop = (deadline: AbortSignal): Promise<void> => {
    ahead.stop();
    return settlements.stop(deadline);
  };
  return { limits, settlements, stop };
}

function openEmbedded(database: Extract<StateStore, { kind: "sqlite" }>["database"], means: Means): OpenedLimits {
  const books = new SqliteBooks(database);
  const limits: LocalLimits = new LocalLimits({
    clock: means.clock,
    spent: (keyId, period) => books.spentOf(keyId, period) + settlements.spentOf(keyId, period),
  });
  const settlements: Settlements = new Settlements({ ...means, books, limits });
  return { limits, settlements, stop: (deadline) => settlements.stop(deadline) };
}
