import { createHash } from "node:crypto";
import type { RedisConnection } from "./redis-connection.ts";

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

  /** `purpose` says in the log what was tried. */
  run(redis: RedisConnection, purpose: string, ...values: readonly string[]): Promise<unknown> {
    return redis.run(purpose, async (client, isTooLate) => {
      try {
        return await client.evalsha(this.#sha1, 1, prefixOnly, ...values);
      } catch (error) {
        if (isTooLate() || !(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
        return await client.eval(this.#lua, 1, prefixOnly, ...values);
      }
    });
  }
}
