/** The time of the last backup of a site. */
import type { StateStore } from "./open-key-store.ts";

const redisAt = "backed-up-at";

export async function noteBackup(state: StateStore, atMs: number): Promise<void> {
  const at = Math.round(atMs);
  if (state.kind === "redis") await state.redis.run("note a backup", (redis) => redis.set(redisAt, at));
  else state.database.change("note a backup", (sql) => sql.run`INSERT OR REPLACE INTO last_backup VALUES (1, ${at})`);
}

export async function lastBackup(state: StateStore): Promise<number | undefined> {
  const at =
    state.kind === "redis"
      ? await state.redis.run("find the last backup", (redis) => redis.get(redisAt))
      : state.database.read("find the last backup", (sql) => sql.get`SELECT at FROM last_backup`)?.["at"];
  return at === null || at === undefined ? undefined : Number(at);
}
