import type { StateStore } from "../keys/open-key-store.ts";
import { RedisUsage } from "./redis-usage.ts";
import { SqliteUsage } from "./sqlite-usage.ts";
import type { UsageRows } from "./usage-row.ts";

/** Returns the usage records of the store that holds the keys. */
export function openUsage(state: StateStore): UsageRows {
  return state.kind === "redis" ? new RedisUsage(state.redis) : new SqliteUsage(state.database);
}
