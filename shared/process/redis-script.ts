import { createHash } from "node:crypto";
import type { RedisConnection } from "./redis-connection.ts";

/** An empty key: the connection adds its prefix to every key, so that Redis receives the prefix itself. */
const prefixOnly = "";

/**
 * A Lua script that Redis runs atomically. It is sent by its hash, and in full to a server that does not know it yet.
 * KEYS[1] is the prefix of all keys, from which a script builds the ones that it needs. That works with one Redis, with
 * or without Sentinel, but not with Redis Cluster.
 */
export class RedisScript {
  readonly #lua: string;
  readonly #sha1: string;

  constructor(lua: string) {
    this.#lua = lua;
    this.#sha1 = createHash("sha1").update(lua).digest("hex");
  }

  /** Runs the script. `purpose` names it in the log. */
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
