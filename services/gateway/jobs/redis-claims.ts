import type { Result } from "ioredis";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import type { RedisConnection } from "#shared/process/redis-connection.ts";
import { type AnswerClaims, type Claim, claim, type ClaimName, claimsPerKeyMax } from "./answer-claims.ts";

/** KEYS: the claim, the names of its key by the time of their end. ARGV: claim, name, ms, the most names. */
const takeLua = `
local held = redis.call("GET", KEYS[1])
if held then return held end
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now)
if redis.call("ZCARD", KEYS[2]) >= tonumber(ARGV[4]) then return "" end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[3])
redis.call("ZADD", KEYS[2], now + ARGV[3], ARGV[2])
redis.call("PEXPIRE", KEYS[2], ARGV[3])
return ARGV[1]
`;

/** As above, with the owner as the last of ARGV. An empty claim frees the name. */
const renewLua = `
local held = redis.call("GET", KEYS[1])
if not held or cjson.decode(held).owner ~= ARGV[4] then return 0 end
if ARGV[1] == "" then
  redis.call("DEL", KEYS[1])
  redis.call("ZREM", KEYS[2], ARGV[2])
  return 1
end
local time = redis.call("TIME")
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[3])
redis.call("ZADD", KEYS[2], time[1] * 1000 + ARGV[3], ARGV[2])
return 1
`;

declare module "ioredis" {
  interface RedisCommander<Context> {
    takeClaim(
      at: string,
      names: string,
      claimed: string,
      name: string,
      ms: number,
      max: number,
    ): Result<string, Context>;
    renewClaim(
      at: string,
      names: string,
      claimed: string,
      name: string,
      ms: number,
      owner: string,
    ): Result<number, Context>;
  }
}

/** The claims of all gateways of a site, in Redis. */
export class RedisClaims implements AnswerClaims {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
    redis.define("takeClaim", { lua: takeLua, numberOfKeys: 2 });
    redis.define("renewClaim", { lua: renewLua, numberOfKeys: 2 });
  }

  async take(name: ClaimName, claimed: Claim, forMs: number): Promise<Claim | undefined> {
    const held = await this.#redis.run("claim an answer", (redis) =>
      redis.takeClaim(claimAt(name), namesAt(name), JSON.stringify(claimed), name.name, forMs, claimsPerKeyMax),
    );
    return claim.safeParse(jsonIn(held)).data;
  }

  async renew(name: ClaimName, owner: string, claimed: Claim, forMs: number): Promise<void> {
    await this.#write(name, JSON.stringify(claimed), { forMs, owner });
  }

  async release(name: ClaimName, owner: string): Promise<void> {
    await this.#write(name, "", { forMs: 0, owner });
  }

  async #write(
    name: ClaimName,
    claimed: string,
    { forMs, owner }: { readonly forMs: number; readonly owner: string },
  ): Promise<void> {
    await this.#redis.run("note an answer", (redis) =>
      redis.renewClaim(claimAt(name), namesAt(name), claimed, name.name, forMs, owner),
    );
  }
}

function claimAt({ keyId, name }: ClaimName): string {
  return `claim:${keyId}:${name}`;
}

function namesAt({ keyId }: ClaimName): string {
  return `claims:${keyId}`;
}
