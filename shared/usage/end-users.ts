import type { Peppers } from "../keys/pepper.ts";
import { unseal } from "../keys/seal.ts";
import type { RedisConnection, RedisScript } from "../process/redis-connection.ts";
import { dayMs } from "../process/clock.ts";
import type { StateStore } from "../store/open-key-store.ts";
import type { SqlTags, StateDatabase } from "../store/state-database.ts";
import { usageTables } from "./usage.ts";

/** The most end users of one key that have books of their own. */
export const endUsersMax = 100_000;
/** Names of end users are kept as long as their rows of usage. */
export const endUsersKeptDays = usageTables.users.keptDays;
/** The end user in whose place all others stand, once a key has `endUsersMax` of them. */
export const otherEndUsers = "others";

/** The use of a key by an end user on a day. The store cannot read the name. */
export interface EndUserUse {
  readonly keyId: string;
  readonly digest: string;
  readonly sealed: Uint8Array;
  /** The beginning of the day, and of the running period of the budgets of the key's users. */
  readonly dayAtMs: number;
  readonly periodAtMs: number;
}

/**
 * The end users of keys, for all gateways of a site. Methods fail with a Fault `backend_unavailable` while the store is
 * unavailable.
 */
export interface EndUsers {
  /**
   * Notes a use. A key with `max` users drops the one that was not used for longest. Returns false if all of them were used
   * in the running period: such a user never falls out.
   */
  note(use: EndUserUse): Promise<boolean>;
  /** Returns the sealed names of end users, each of which is `<key id>:<digest>`, in their order. */
  sealedNames(users: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
}

/** Returns the names of end users. One that is gone, or under a pepper that is gone, has none. */
export async function namesOfEndUsers(
  users: readonly string[],
  { endUsers, peppers }: { readonly endUsers: Pick<EndUsers, "sealedNames">; readonly peppers: Peppers },
): Promise<ReadonlyMap<string, string>> {
  const sealed = await endUsers.sealedNames(users);
  const names = users.map((user, at): [string, string | undefined] => {
    const [keyId = ""] = user.split(":");
    const name = sealed[at] && unseal(sealed[at], peppers.endUsersKeys(keyId), user);
    return [user, user.endsWith(`:${otherEndUsers}`) ? otherEndUsers : name?.bytes.toString()];
  });
  return new Map(names.filter((each): each is [string, string] => each[1] !== undefined));
}

export function openEndUsers(state: StateStore, max = endUsersMax): EndUsers {
  return state.kind === "redis" ? new RedisEndUsers(state.redis, max) : new SqliteEndUsers(state.database, max);
}

const keptMs = endUsersKeptDays * dayMs;
/** The most old users that one use drops. */
const droppedAtOnceMax = 100;

/** KEYS: the digests by the day of their last use, the names by digest. ARGV: digest, name, day, its period, end of old days, most. */
const noteLua = `
local function drop(before, most)
  local gone = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", "(" .. before, "LIMIT", 0, most)
  for _, digest in ipairs(gone) do
    redis.call("ZREM", KEYS[1], digest)
    redis.call("HDEL", KEYS[2], digest)
  end
  return #gone
end
drop(ARGV[5], ${droppedAtOnceMax})
if not redis.call("ZSCORE", KEYS[1], ARGV[1]) then
  if redis.call("ZCARD", KEYS[1]) >= tonumber(ARGV[6]) and drop(ARGV[4], 1) == 0 then return 0 end
  redis.call("HSET", KEYS[2], ARGV[1], ARGV[2])
end
redis.call("ZADD", KEYS[1], ARGV[3], ARGV[1])
for _, each in ipairs(KEYS) do redis.call("PEXPIRE", each, ${keptMs + dayMs}) end
return 1
`;

const namesAtOnceMax = 1_000;
const namesAt = (keyId: string): string => `end-user-names:${keyId}`;

class RedisEndUsers implements EndUsers {
  readonly #redis: RedisConnection;
  readonly #max: number;
  readonly #note: RedisScript<number>;

  constructor(redis: RedisConnection, max: number) {
    this.#redis = redis;
    this.#max = max;
    this.#note = redis.script(noteLua, 2);
  }

  async note({ keyId, digest, sealed, dayAtMs, periodAtMs }: EndUserUse): Promise<boolean> {
    const at = [`end-users:${keyId}`, namesAt(keyId)] as const;
    const use = [digest, Buffer.from(sealed), dayAtMs, periodAtMs, dayAtMs - keptMs, this.#max] as const;
    return (await this.#note("note an end user", ...at, ...use)) === 1;
  }

  async sealedNames(users: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    const names: (Uint8Array | undefined)[] = [];
    for (let from = 0; from < users.length; from += namesAtOnceMax) {
      const some = users.slice(from, from + namesAtOnceMax).map((user) => user.split(":"));
      const found = await this.#redis.pipeline("read the names of end users", (batch) =>
        some.reduce((all, [keyId = "", digest = ""]) => all.hgetBuffer(namesAt(keyId), digest), batch),
      );
      names.push(...found.map((sealed) => (sealed as Buffer | null) ?? undefined));
    }
    return names;
  }
}

class SqliteEndUsers implements EndUsers {
  readonly #database: StateDatabase;
  readonly #max: number;
  /** The periods in which keys are full: no user falls out before they end. */
  readonly #fullIn = new Map<string, number>();

  constructor(database: StateDatabase, max: number) {
    this.#database = database;
    this.#max = max;
  }

  async note({ keyId, digest, sealed, dayAtMs, periodAtMs }: EndUserUse): Promise<boolean> {
    return this.#database.change("note an end user", (sql) => {
      sql.run`DELETE FROM end_users WHERE used_at < ${dayAtMs - keptMs}`;
      const known = sql.get`SELECT used_at AS at FROM end_users WHERE key_id = ${keyId} AND digest = ${digest}`;
      if (known === undefined && !this.#makeRoom(sql, { keyId, periodAtMs })) return false;
      if (known?.["at"] !== dayAtMs)
        sql.run`INSERT INTO end_users VALUES (${keyId}, ${digest}, ${dayAtMs}, ${sealed})
          ON CONFLICT DO UPDATE SET used_at = excluded.used_at`;
      return true;
    });
  }

  /** Drops the user that was not used for longest from a key that is full. False if all were used in the period. */
  #makeRoom(sql: SqlTags, { keyId, periodAtMs }: Pick<EndUserUse, "keyId" | "periodAtMs">): boolean {
    if (this.#fullIn.get(keyId) === periodAtMs) return false;
    const full = sql.get`SELECT 1 FROM end_users WHERE key_id = ${keyId} LIMIT 1 OFFSET ${this.#max - 1}`;
    const oldest = full && sql.get`SELECT min(used_at) AS at, digest FROM end_users WHERE key_id = ${keyId}`;
    if (oldest === undefined) return true;
    if (Number(oldest["at"]) >= periodAtMs) this.#fullIn.set(keyId, periodAtMs);
    else sql.run`DELETE FROM end_users WHERE key_id = ${keyId} AND digest = ${oldest["digest"] ?? null}`;
    return Number(oldest["at"]) < periodAtMs;
  }

  async sealedNames(users: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#database.read("read the names of end users", (sql) =>
      users.map((user) => {
        const [keyId = "", digest = ""] = user.split(":");
        const row = sql.get`SELECT sealed FROM end_users WHERE key_id = ${keyId} AND digest = ${digest}`;
        return row?.["sealed"] as Uint8Array | undefined;
      }),
    );
  }
}
