import { z } from "zod";
import type { RedisConnection } from "../process/redis-connection.ts";
import { keyRecord, keyTombstone, type FoundKey, type KeyRecord } from "./key-record.ts";
import { recordAfterlifeMs, type KeyStore, type PepperClaim, type Revocation } from "./key-store.ts";
import { keyId, type KeyId } from "./key-token.ts";
import type { PepperFingerprint } from "./pepper.ts";
import { readStored } from "./read-stored.ts";

/**
 * Keys in Redis. A record is a hash that Redis itself drops after its afterlife; the tombstone beside it, written in
 * the same transaction, has no such end. The fields of both hold JSON. The connection puts its prefix before all names.
 */
const recordAt = (id: KeyId): string => `key:${id}`;
const tombstoneAt = (id: KeyId): string => `tombstone:${id}`;
const idsAt = "keys";
const pepperAt = "pepper";

const idsPerPage = 250;

/** One script, so that a record that lapses meanwhile is not brought back as a stump without an end. */
const revokeScript = `
local tombstones = redis.call("DEL", KEYS[2])
if redis.call("EXISTS", KEYS[1]) == 0 then
  return tombstones == 1 and "revoked" or "unknown"
end
return redis.call("HSETNX", KEYS[1], "revokedAt", ARGV[1]) == 1 and "revoked" or "already_revoked"
`;

export class RedisKeyStore implements KeyStore {
  readonly #redis: RedisConnection;
  readonly #afterlifeMs: number;

  constructor(redis: RedisConnection, options: { readonly afterlifeMs?: number } = {}) {
    this.#redis = redis;
    this.#afterlifeMs = options.afterlifeMs ?? recordAfterlifeMs;
  }

  async find(id: KeyId): Promise<FoundKey> {
    const [record, tombstone] = await this.#redis.pipeline("find a key", (batch) =>
      batch.hgetall(recordAt(id)).hgetall(tombstoneAt(id)),
    );
    if (!isEmpty(record)) return { kind: "record", record: readStored(keyRecord, () => decode(record)) };
    if (!isEmpty(tombstone)) return { kind: "tombstone", tombstone: readStored(keyTombstone, () => decode(tombstone)) };
    return { kind: "absent" };
  }

  async issue(record: KeyRecord): Promise<void> {
    const { id, digest, expiresAt } = record;
    await this.#redis.transaction("keep a new key", (batch) =>
      batch
        .hset(recordAt(id), encode(record))
        .pexpireat(recordAt(id), expiresAt + this.#afterlifeMs)
        .hset(tombstoneAt(id), encode({ digest, expiresAt }))
        .sadd(idsAt, id),
    );
  }

  async list(): Promise<readonly KeyRecord[]> {
    const records = new Map<string, KeyRecord>();
    let cursor = "0";
    do {
      const [next, ids] = await this.#redis.run("list keys", (redis) =>
        redis.sscan(idsAt, cursor, "COUNT", idsPerPage),
      );
      const page = readStored(z.array(keyId), () => ids);
      for (const record of await this.#recordsOf(page)) records.set(record.id, record);
      cursor = next;
    } while (cursor !== "0");
    return [...records.values()].sort((one, other) => one.createdAt - other.createdAt);
  }

  async revoke(id: KeyId, atMs: number): Promise<Revocation> {
    const reply = await this.#redis.run("revoke a key", (redis) =>
      redis.eval(revokeScript, 2, recordAt(id), tombstoneAt(id), JSON.stringify(atMs)),
    );
    return reply === "revoked" || reply === "already_revoked" ? reply : "unknown";
  }

  async ready(): Promise<void> {
    await this.#redis.run("answer a ping", (redis) => redis.ping());
  }

  async claimPepper(fingerprint: PepperFingerprint): Promise<PepperClaim> {
    const [claimed, kept] = await this.#redis.transaction("compare the pepper", (batch) =>
      batch.setnx(pepperAt, fingerprint).get(pepperAt),
    );
    if (claimed === 1) return "claimed";
    return kept === fingerprint ? "matches" : "mismatch";
  }

  async close(): Promise<void> {
    this.#redis.close();
  }

  /** Forgets the ids whose records have lapsed; an id is never issued again, so none can be lost. */
  async #recordsOf(ids: readonly KeyId[]): Promise<KeyRecord[]> {
    if (ids.length === 0) return [];
    const replies = await this.#redis.pipeline("list keys", (batch) =>
      ids.reduce((commands, id) => commands.hgetall(recordAt(id)), batch),
    );
    const lapsed = ids.filter((_, at) => isEmpty(replies[at]));
    if (lapsed.length > 0) await this.#redis.run("forget lapsed keys", (redis) => redis.srem(idsAt, ...lapsed));
    return replies.filter((reply) => !isEmpty(reply)).map((reply) => readStored(keyRecord, () => decode(reply)));
  }
}

const hash = z.record(z.string(), z.string());

function isEmpty(reply: unknown): boolean {
  return Object.keys(hash.parse(reply)).length === 0;
}

function encode(value: object): Record<string, string> {
  return Object.fromEntries(Object.entries(value).map(([field, each]) => [field, JSON.stringify(each)]));
}

function decode(reply: unknown): unknown {
  const fields = Object.entries(hash.parse(reply));
  return Object.fromEntries(fields.map(([field, text]): [string, unknown] => [field, JSON.parse(text)]));
}
