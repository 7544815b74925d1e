import type { Result } from "ioredis";
import type { KeyId } from "../keys/key-token.ts";
import { dayMs } from "../process/clock.ts";
import type { RedisConnection } from "../process/redis-connection.ts";
import {
  type SealedResponse,
  storedDaysMax,
  type StoredResponses,
  storedResponsesMax,
} from "../records/stored-responses.ts";
import { recordAt, responsesAt } from "./redis-key-store.ts";

/**
 * KEYS: response, list of the key's responses, record of the key. ARGV: sealed, id, ms until its end, most responses,
 * ms until the end of the list, which outlives each response in it.
 */
const putResponseLua = `
if redis.call("EXISTS", KEYS[3]) == 0 or redis.call("HEXISTS", KEYS[3], "revokedAt") == 1 then return 0 end
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if not redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[3], "NX") then return 0 end
redis.call("ZADD", KEYS[2], now + ARGV[3], ARGV[2])
redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now)
local over = redis.call("ZCARD", KEYS[2]) - tonumber(ARGV[4])
if over > 0 then
  local oldest = redis.call("ZPOPMIN", KEYS[2], over)
  for at = 1, #oldest, 2 do redis.call("UNLINK", KEYS[2] .. ":" .. oldest[at]) end
end
redis.call("PEXPIRE", KEYS[2], ARGV[5])
return 1
`;

declare module "ioredis" {
  interface RedisCommander<Context> {
    putResponse(...keysAndValues: (string | number | Buffer)[]): Result<number, Context>;
  }
}

/** Responses in Redis, each under a name of its own that Redis itself drops, and a list of names for each key. */
export class RedisResponseStore implements StoredResponses {
  readonly #redis: RedisConnection;
  readonly #max: number;

  constructor(redis: RedisConnection, max = storedResponsesMax) {
    this.#redis = redis;
    this.#max = max;
    redis.define("putResponse", { lua: putResponseLua, numberOfKeys: 3 });
  }

  async put(key: KeyId, { id, sealed }: SealedResponse, keptMs: number): Promise<boolean> {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const [at, list, record] = [responseAt(key, id), responsesAt(key), recordAt(key)];
    const stored = await this.#redis.run("store a response", (redis) =>
      redis.putResponse(at, list, record, bytes, id, keptMs, this.#max, storedDaysMax * dayMs),
    );
    return stored === 1;
  }

  async find(key: KeyId, ids: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    if (ids.length === 0) return [];
    const found = await this.#redis.run("find responses", (redis) =>
      redis.mgetBuffer(ids.map((id) => responseAt(key, id))),
    );
    return found.map((each) => each ?? undefined);
  }

  async bytesOf(key: KeyId, ids: readonly string[]): Promise<number> {
    const lengths = await this.#redis.pipeline("measure responses", (batch) => {
      for (const id of ids) batch.strlen(responseAt(key, id));
      return batch;
    });
    return lengths.reduce<number>((sum, each) => sum + Number(each), 0);
  }

  async remove(key: KeyId, id: string): Promise<boolean> {
    const [removed] = await this.#redis.pipeline("delete a response", (batch) =>
      batch.del(responseAt(key, id)).zrem(responsesAt(key), id),
    );
    return removed === 1;
  }

  async removeExpired(): Promise<void> {}
}

function responseAt(key: KeyId, id: string): string {
  return `${responsesAt(key)}:${id}`;
}
