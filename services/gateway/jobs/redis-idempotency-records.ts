import { jsonIn } from "#shared/protocol/frame-payload.ts";
import type { RedisConnection, RedisScript } from "#shared/process/redis-connection.ts";
import {
  type IdempotencyRecords,
  type IdempotencyRecord,
  idempotencyRecord,
  type IdempotencyName,
  idempotencyKeysMax,
  type Replacement,
} from "./idempotency-records.ts";

/** KEYS: the record, the names of its key by the time of their end. ARGV: record, name, ms, the most names, owner before. */
const putLua = `
local held = redis.call("GET", KEYS[1])
local owner = held and cjson.decode(held).owner or ""
if owner ~= ARGV[5] then return held or "" end
if ARGV[3] == "0" then
  redis.call("DEL", KEYS[1])
  redis.call("ZREM", KEYS[2], ARGV[2])
  return ""
end
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now)
if not held and redis.call("ZCARD", KEYS[2]) >= tonumber(ARGV[4]) then return "" end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[3])
redis.call("ZADD", KEYS[2], now + ARGV[3], ARGV[2])
local last = redis.call("ZRANGE", KEYS[2], -1, -1, "WITHSCORES")
redis.call("PEXPIREAT", KEYS[2], last[2])
return ARGV[1]
`;

/** The idempotency records of all gateways of a site, in Redis. */
export class RedisIdempotencyRecords implements IdempotencyRecords {
  readonly #put: RedisScript<string>;

  constructor(redis: RedisConnection) {
    this.#put = redis.script(putLua, 2);
  }

  async put(
    { keyId, name }: IdempotencyName,
    record: IdempotencyRecord,
    { from = "", forMs }: Replacement,
  ): Promise<IdempotencyRecord | undefined> {
    const at = [`claim:${keyId}:${name}`, `claims:${keyId}`] as const;
    const args = [JSON.stringify(record), name, forMs, idempotencyKeysMax, from];
    const held = await this.#put("put an idempotency record", ...at, ...args);
    return idempotencyRecord.safeParse(jsonIn(held)).data;
  }
}
