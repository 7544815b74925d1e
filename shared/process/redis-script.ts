import { createHash } from "node:crypto";
import type { Redis } from "ioredis";

/** The connection puts its prefix before every key; before none it is the prefix itself. */
const prefixOnly = "";

/**
 * Commands in Lua that Redis runs as one. They are sent by name, and in full to a server that does not know them yet.
 * KEYS[1] is the prefix of all names, from which a script builds those that it needs: that is for one Redis, which
 * Sentinel may watch, and not for Redis Cluster.
 */
export class RedisScript {
  readonly #lua: string;
  readonly #sha1: string;

  constructor(lua: string) {
    this.#lua = lua;
    this.#sha1 = createHash("sha1").update(lua).digest("hex");
  }

  async run(redis: Redis, ...values: readonly string[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.#sha1, 1, prefixOnly, ...values);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return await redis.eval(this.#lua, 1, prefixOnly, ...values);
    }
  }
}
