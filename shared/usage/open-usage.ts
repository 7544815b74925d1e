import type { StateStore } from "../keys/open-key-store.ts";
import { RedisUsage } from "./redis-usage.ts";
import { SqliteUsage } from "./sqlite-usage.ts";
import type { UsageRows } from "./usage-row.ts";

/** What was counted, from where the keys are. */
export function openUsage(state: StateStore): UsageRows {
  return state.kind === "redis" ? new RedisUsage(state.redis) : new SqliteUsage(state.database);
}
