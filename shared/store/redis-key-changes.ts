import { type KeyChanges, type KeyChangesListener, tellEntry } from "../records/key-changes.ts";
import { z } from "zod";
import type { RedisConnection } from "../process/redis-connection.ts";
import { sleep, type Clock } from "../process/clock.ts";
import { auditAt, peppersAt } from "./redis-key-store.ts";

/** Longest time for which Redis may hold back an answer without entries. A missing answer is noticed after that. */
export const changesWaitMs = 1_000;
/** Below the silence after which a connection is given up, so that the two are not confused. */
export const changesTimeoutMs = 1_600;
const retryMs = 100;
const entriesPerAnswer = 1_000;

const entry = z.tuple([z.string(), z.array(z.string())]);
const end = z.tuple([z.number(), z.array(entry)]);

/** The start position of an empty trail. */
const beforeAll = "0-0";

const answer = z.tuple([z.number(), z.array(z.tuple([z.string(), z.array(entry)])).nullable()]);

/**
 * Reads the audit trail as it grows. It needs its own connection, because Redis holds the answer until there is an
 * entry. Each read starts after the last entry that was read. No notification can be lost, because none is used.
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
    /** False while the store is not founded. Once it is founded again, all entries of its trail are reported. */
    let foundedBefore = true;
    let toldRevoked = beforeAll;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (cursor === undefined || !(await this.#holds(cursor))) {
          const last: string | undefined = await this.#end();
          cursor = last === undefined || foundedBefore ? last : beforeAll;
          foundedBefore = last !== undefined;
          if (!signal.aborted && cursor !== undefined) listener.onGap();
          if (cursor === undefined) toldRevoked = await this.#tellRevoked(toldRevoked, listener);
        }
        while (cursor !== undefined) cursor = await this.#read(cursor, listener);
      } catch {
        // `onAway` reports the failure below, and the loop tries again.
      }
      if (signal.aborted) return;
      listener.onAway();
      await sleep(this.#clock, retryMs, signal).catch(() => undefined);
    }
  }

  /**
   * Reports the next entries and returns the position to continue from. Returns undefined when the trail is not the one
   * that was read so far, or the store has no keys any more.
   */
  async #read(cursor: string, listener: KeyChangesListener): Promise<string | undefined> {
    const replies = await this.#redis.pipeline("tell of changed keys", (batch) =>
      batch.exists(peppersAt).xread("COUNT", entriesPerAnswer, "BLOCK", changesWaitMs, "STREAMS", auditAt, cursor),
    );
    const [founded, streams] = answer.parse(replies);
    const entries = streams?.[0]?.[1] ?? [];
    const goesOn = founded === 1 && (entries.length === 0 || (await this.#holds(cursor)));
    if (this.#stopping.signal.aborted) return undefined;
    this.#tell(entries, listener);
    if (!goesOn) return undefined;
    if (entries.length < entriesPerAnswer) listener.onHeard();
    return entries.at(-1)?.[0] ?? cursor;
  }

  /**
   * Reports the revocations in an emptied store, for keys that gateways still know. Returns the position to continue
   * from.
   */
  async #tellRevoked(after: string, listener: KeyChangesListener): Promise<string> {
    const entries = await this.#redis.run("tell of revoked keys", (redis) =>
      redis.xrange(auditAt, `(${after}`, "+", "COUNT", entriesPerAnswer),
    );
    this.#tell(entries, listener);
    return entries.at(-1)?.[0] ?? after;
  }

  #tell(entries: readonly z.output<typeof entry>[], listener: KeyChangesListener): void {
    for (const [, [, subject = "", , text]] of entries) {
      if (this.#stopping.signal.aborted) return;
      tellEntry({ subject, text }, listener);
    }
  }

  /** Returns the end of the trail, or undefined while the store has lost its keys. */
  async #end(): Promise<string | undefined> {
    const replies = await this.#redis.pipeline("find the last change", (batch) =>
      batch.exists(peppersAt).xrevrange(auditAt, "+", "-", "COUNT", 1),
    );
    const [founded, [last]] = end.parse(replies);
    return founded === 1 ? (last?.[0] ?? beforeAll) : undefined;
  }

  /**
   * True if the trail still contains the entry that was read last. If not, the trail is another one: emptied, or
   * restored from an older copy.
   */
  async #holds(cursor: string): Promise<boolean> {
    if (cursor === beforeAll) return true;
    const found = await this.#redis.run("find the change that was read last", (redis) =>
      redis.xrange(auditAt, cursor, cursor),
    );
    return found.length === 1;
  }
}
