import { z } from "zod";
import type { RedisConnection } from "../process/redis-connection.ts";
import { sleep, type Clock } from "../process/clock.ts";
import type { KeyChanges, KeyChangesListener } from "./key-changes.ts";
import { keyId } from "./key-token.ts";
import { auditAt, peppersAt } from "./redis-key-store.ts";

/** How long Redis may hold an answer back when there is nothing to tell. An answer that does not come then is missed. */
export const changesWaitMs = 1_000;
/** Below the silence after which a connection is given up, so that the two are not confused. */
export const changesTimeoutMs = 1_600;
const retryMs = 100;
const entriesPerAnswer = 1_000;

const entry = z.tuple([z.string(), z.array(z.string())]);
const end = z.tuple([z.number(), z.array(entry)]);

/** Where an empty trail is read from. */
const beforeAll = "0-0";

const answer = z.tuple([z.number(), z.array(z.tuple([z.string(), z.array(entry)])).nullable()]);

/**
 * Reads the audit trail as it grows, on a connection of its own, for Redis holds the answer until there is an entry. What
 * is read next is named by the last entry that was read: a notification cannot be lost, for there is none.
 */
export class RedisKeyChanges implements KeyChanges {
  readonly #redis: RedisConnection;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();

  constructor(redis: RedisConnection, options: { readonly clock: Clock }) {
    this.#redis = redis;
    this.#clock = options.clock;
  }

  follow(listener: KeyChangesListener): void {
    void this.#follow(listener);
  }

  close(): void {
    this.#stopping.abort();
    this.#redis.close();
  }

  async #follow(listener: KeyChangesListener): Promise<void> {
    let cursor: string | undefined;
    /** A store that has just been founded has no changes but those that are to be told. */
    let foundedBefore = true;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (cursor === undefined || !(await this.#holds(cursor))) {
          const last: string | undefined = await this.#end();
          cursor = last === undefined || foundedBefore ? last : beforeAll;
          foundedBefore = last !== undefined;
          if (!signal.aborted && cursor !== undefined) listener.onGap();
        }
        while (cursor !== undefined) cursor = await this.#read(cursor, listener);
      } catch {
        // Told below, and tried again.
      }
      if (signal.aborted) return;
      listener.onAway();
      await sleep(this.#clock, retryMs, signal).catch(() => undefined);
    }
  }

  /** Where to read on, or nothing when the trail is not the one that was read so far, or there are no keys any more. */
  async #read(cursor: string, listener: KeyChangesListener): Promise<string | undefined> {
    const replies = await this.#redis.pipeline("tell of changed keys", (batch) =>
      batch.exists(peppersAt).xread("COUNT", entriesPerAnswer, "BLOCK", changesWaitMs, "STREAMS", auditAt, cursor),
    );
    const [founded, streams] = answer.parse(replies);
    const entries = streams?.[0]?.[1] ?? [];
    const goesOn = founded === 1 && (entries.length === 0 || (await this.#holds(cursor)));
    if (this.#stopping.signal.aborted) return undefined;
    for (const [, fields] of entries) {
      const id = keyId.safeParse(fields[1]);
      if (id.success) listener.onChange(id.data);
    }
    if (!goesOn) return undefined;
    if (entries.length < entriesPerAnswer) listener.onHeard();
    return entries.at(-1)?.[0] ?? cursor;
  }

  /** Where the trail ends, or nothing while the store has lost its keys. */
  async #end(): Promise<string | undefined> {
    const replies = await this.#redis.pipeline("find the last change", (batch) =>
      batch.exists(peppersAt).xrevrange(auditAt, "+", "-", "COUNT", 1),
    );
    const [founded, [last]] = end.parse(replies);
    return founded === 1 ? (last?.[0] ?? beforeAll) : undefined;
  }

  /** Whether the trail still has what was read last. If not, it is another one: emptied, or given back as an older copy. */
  async #holds(cursor: string): Promise<boolean> {
    if (cursor === beforeAll) return true;
    const found = await this.#redis.run("find the change that was read last", (redis) =>
      redis.xrange(auditAt, cursor, cursor),
    );
    return found.length === 1;
  }
}
