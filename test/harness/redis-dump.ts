import type { Redis } from "ioredis";

/** All that a Redis holds, as text: each name with whatever is under it. */
export async function dumpOf(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const names = await redis.keys("*");
  const dumped = names.map(async (name): Promise<[string, string]> => [
    name,
    JSON.stringify(await valueAt(redis, name)),
  ]);
  return new Map(await Promise.all(dumped));
}

async function valueAt(redis: Redis, name: string): Promise<unknown> {
  const type = await redis.type(name);
  switch (type) {
    case "none":
      return undefined;
    case "string":
      return redis.get(name);
    case "hash":
      return redis.hgetall(name);
    case "set":
      return redis.smembers(name);
    case "zset":
      return redis.zrange(name, "0", "-1", "WITHSCORES");
    case "list":
      return redis.lrange(name, 0, -1);
    case "stream":
      return redis.xrange(name, "-", "+");
    default:
      throw new Error(`nobody here can read what is under ${name}, a ${type}`);
  }
}
