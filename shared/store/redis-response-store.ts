import { z } from "zod";
import { keyId, type KeyId } from "../keys/key-token.ts";
import { dayMs } from "../process/clock.ts";
import type { RedisConnection, RedisScript } from "../process/redis-connection.ts";
import {
  positionHeldMs,
  type PutOutcome,
  type SealedResponse,
  type Shelf,
  storedDaysMax,
  type StoredResponses,
  type StoringTerms,
  storedResponsesMax,
} from "../records/stored-responses.ts";
import { forgetResponsesLua, idsAt, recordAt, responseBytesAt, responsesAt } from "./redis-key-store.ts";

/**
 * Drops the responses that have ended. An older gateway counts no bytes: where it has stored or dropped some, all of
 * the key are measured again.
 */
const settleLua = `${forgetResponsesLua}
local function drop(list, sums, key, ids)
  for _, id in ipairs(ids) do
    redis.call("UNLINK", list .. ":" .. id)
    redis.call("ZREM", list, id)
    countBytes(sums, key, -(tonumber(redis.call("HGET", list .. ":bytes", id)) or 0))
    redis.call("HDEL", list .. ":bytes", id)
  end
end
local function settle(list, sums, key)
  local time = redis.call("TIME")
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  drop(list, sums, key, redis.call("ZRANGEBYSCORE", list, "-inf", now))
  local count = redis.call("ZCARD", list)
  if count > 0 and count == redis.call("HLEN", list .. ":bytes") then return now end
  local bytes = 0
  redis.call("UNLINK", list .. ":bytes")
  for _, id in ipairs(redis.call("ZRANGE", list, 0, -1)) do
    local length = redis.call("STRLEN", list .. ":" .. id)
    redis.call("HSET", list .. ":bytes", id, length)
    bytes = bytes + length
  end
  countBytes(sums, key, bytes - bytesOf(sums, key))
  if bytes == 0 then redis.call("HDEL", sums, key) end
  return now
end
`;

/** KEYS: list of the key's responses, bytes of responses. ARGV: id of the key, ids of responses to drop. */
const dropResponsesLua = `${settleLua}
settle(KEYS[1], KEYS[2], ARGV[1])
local found = 0
for at = 2, #ARGV do found = found + redis.call("EXISTS", KEYS[1] .. ":" .. ARGV[at]) end
drop(KEYS[1], KEYS[2], ARGV[1], { unpack(ARGV, 2) })
return found
`;

/**
 * KEYS: list of the key's responses, bytes of responses, response, record of the key. ARGV: id of the key, id, sealed,
 * ms until its end, most responses, ms until the end of the list, which outlives each response in it, most bytes of the
 * key and of the site. A held position is an empty response.
 */
const putResponseLua = `${settleLua}
local list, sums, key, id = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if redis.call("EXISTS", KEYS[4]) == 0 or redis.call("HEXISTS", KEYS[4], "revokedAt") == 1 then return "closed" end
if redis.call("STRLEN", KEYS[3]) > 0 then return "known" end
local now = settle(list, sums, key)
if bytesOf(sums, "") + #ARGV[3] > tonumber(ARGV[8]) then return "full" end
redis.call("SET", KEYS[3], ARGV[3], "PX", ARGV[4])
redis.call("ZADD", list, now + ARGV[4], id)
redis.call("HSET", list .. ":bytes", id, #ARGV[3])
countBytes(sums, key, #ARGV[3])
for at = 1, redis.call("ZCARD", list) - 1 do
  if redis.call("ZCARD", list) <= tonumber(ARGV[5]) and bytesOf(sums, key) <= tonumber(ARGV[7]) then break end
  drop(list, sums, key, redis.call("ZRANGE", list, 0, 0))
end
redis.call("PEXPIRE", list, ARGV[6])
redis.call("PEXPIRE", list .. ":bytes", ARGV[6])
return "stored"
`;

/** KEYS: conversation. ARGV: most positions, ms for which the position is held. */
const holdPositionLua = `
if redis.call("EXISTS", KEYS[1]) == 0 then return 0 end
for position = 1, tonumber(ARGV[1]) do
  if redis.call("SET", KEYS[1] .. "." .. position, "", "NX", "PX", ARGV[2]) then return position end
end
return 0
`;

/** Responses in Redis, each under a name of its own that Redis itself drops, and a list of names for each key. */
export class RedisResponseStore implements StoredResponses {
  readonly #redis: RedisConnection;
  readonly #shelf: Shelf;
  readonly #max: number;
  readonly #sums: string;
  readonly #put: RedisScript<PutOutcome>;
  readonly #drop: RedisScript<number>;
  readonly #hold: RedisScript<number>;

  constructor(redis: RedisConnection, shelf: Shelf = "response", max = storedResponsesMax) {
    this.#redis = redis;
    this.#shelf = shelf;
    this.#max = max;
    this.#sums = responseBytesAt(shelf);
    this.#put = redis.script(putResponseLua, 4);
    this.#drop = redis.script(dropResponsesLua, 2);
    this.#hold = redis.script(holdPositionLua, 1);
  }

  async put(key: KeyId, { id, sealed }: SealedResponse, terms: StoringTerms): Promise<PutOutcome> {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const names = [this.#listOf(key), this.#sums, this.#at(key, id), recordAt(key)];
    const { keptMs, keyBytesMax, siteBytesMax } = terms;
    const bounds = [keptMs, this.#max, storedDaysMax * dayMs, keyBytesMax, siteBytesMax];
    return this.#put("store a response", ...names, key, id, bytes, ...bounds);
  }

  async holdPosition(key: KeyId, conversation: string, positionsMax: number): Promise<string | undefined> {
    const position = await this.#hold("hold a position", this.#at(key, conversation), positionsMax, positionHeldMs);
    return position === 0 ? undefined : `${conversation}.${position}`;
  }

  async find(key: KeyId, ids: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    if (ids.length === 0) return [];
    const names = ids.map((id) => this.#at(key, id));
    const found = await this.#redis.run("find responses", (redis) => redis.mgetBuffer(names));
    return found.map((each) => each ?? undefined);
  }

  async bytesOf(key: KeyId, ids: readonly string[]): Promise<number> {
    const lengths = await this.#redis.pipeline("measure responses", (batch) => {
      for (const id of ids) batch.strlen(this.#at(key, id));
      return batch;
    });
    return lengths.reduce<number>((sum, each) => sum + Number(each), 0);
  }

  async remove(key: KeyId, ...ids: readonly string[]): Promise<boolean> {
    return (await this.#drop("drop responses", this.#listOf(key), this.#sums, key, ...ids)) > 0;
  }

  async removeExpired(): Promise<void> {
    // An older gateway counts no bytes.
    const ids = await this.#redis.run("find keys with responses", (redis) => redis.smembers(idsAt));
    for (const id of new Set([...z.array(keyId).parse(ids), ...(await this.holders())])) await this.remove(id);
  }

  async holders(): Promise<readonly KeyId[]> {
    const names = await this.#redis.run("find keys with responses", (redis) => redis.hkeys(this.#sums));
    return z.array(keyId).parse(names.filter((name) => name !== ""));
  }

  #listOf(key: KeyId): string {
    return responsesAt(this.#shelf, key);
  }

  #at(key: KeyId, id: string): string {
    return `${this.#listOf(key)}:${id}`;
  }
}
