import type { Result } from "ioredis";
import { auditEntriesMax, subjectOf, type AuditEntry } from "../keys/audit-entry.ts";
import { unfoundedStore, type Written } from "../keys/key-store.ts";
import { auditAt, peppersAt } from "../keys/redis-key-store.ts";
import type { RedisConnection } from "../process/redis-connection.ts";
import { readRoute, type RouteRecord, type RouteStore } from "./route-record.ts";

/** A hash that maps each name to its record as JSON. */
const routesAt = "routes";

/**
 * KEYS: routes, peppers, audit. ARGV: name, version that is replaced, new record or nothing to remove it, subject of the
 * audit entry, audit entry, maximum number of audit entries.
 */
const writeRouteLua = `
if redis.call("EXISTS", KEYS[2]) == 0 then return "unfounded" end
local text = redis.call("HGET", KEYS[1], ARGV[1])
local version = text and cjson.decode(text).version or 0
if version ~= tonumber(ARGV[2]) then return "conflict" end
if ARGV[3] == "" then redis.call("HDEL", KEYS[1], ARGV[1]) else redis.call("HSET", KEYS[1], ARGV[1], ARGV[3]) end
redis.call("XADD", KEYS[3], "MAXLEN", "~", ARGV[6], "*", "key", ARGV[4], "entry", ARGV[5])
return "written"
`;

declare module "ioredis" {
  interface RedisCommander<Context> {
    writeRoute(...keysAndValues: (string | number)[]): Result<unknown, Context>;
  }
}

/** Routes in Redis, beside the keys. */
export class RedisRouteStore implements RouteStore {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
    redis.define("writeRoute", { lua: writeRouteLua, numberOfKeys: 3 });
  }

  async list(): Promise<readonly RouteRecord[]> {
    const records = await this.#redis.run("list routes", (redis) => redis.hvals(routesAt));
    return records.map(readRoute).toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  async find(name: string): Promise<RouteRecord | undefined> {
    const record = await this.#redis.run("find a route", (redis) => redis.hget(routesAt, name));
    return record === null ? undefined : readRoute(record);
  }

  write(record: RouteRecord, entry: AuditEntry): Promise<Written> {
    return this.#change({ name: record.name, replaces: record.version - 1, text: JSON.stringify(record) }, entry);
  }

  remove({ name, version }: RouteRecord, entry: AuditEntry): Promise<Written> {
    return this.#change({ name, replaces: version, text: "" }, entry);
  }

  async #change(
    { name, replaces, text }: { readonly name: string; readonly replaces: number; readonly text: string },
    entry: AuditEntry,
  ): Promise<Written> {
    const values = [name, replaces, text, subjectOf(entry), JSON.stringify(entry), auditEntriesMax];
    const reply = await this.#redis.run("change a route", (redis) =>
      redis.writeRoute(routesAt, peppersAt, auditAt, ...values),
    );
    if (reply === "unfounded") throw unfoundedStore();
    return reply === "written" ? "written" : "conflict";
  }
}
