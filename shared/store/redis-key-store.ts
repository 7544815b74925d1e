import { z } from "zod";
import type { RedisConnection, RedisScript } from "../process/redis-connection.ts";
import { auditEntriesMax, auditEntry, type AuditEntry } from "../records/audit-entry.ts";
import { keyRecord, keyTombstone, type FoundKey, type KeyRecord } from "../records/key-record.ts";
import {
  fitsQuery,
  foreignPepper,
  type KeyStore,
  type LogQuery,
  readEach,
  readStored,
  recordAfterlifeMs,
  type Replication,
  replicaWaitMs,
  unfoundedStore,
  type UnreadRecord,
  type Written,
} from "../records/key-store.ts";
import { keyId, type KeyId } from "../keys/key-token.ts";
import { assertRead, gatewayIsThereForMs, isNew, readGatewayNote, type SiteGateway } from "../records/site-gateways.ts";
import { type Shelf, shelves } from "../records/stored-responses.ts";
import { pepperFingerprint, type PepperFingerprint } from "../keys/pepper.ts";

/**
 * Keys in Redis. A record is a hash that Redis itself drops after its afterlife. The tombstone beside it is written in
 * the same step and never expires. The fields of both hold JSON. The audit trail is a stream, which gateways follow to
 * learn of changes. The connection puts its prefix before all names.
 */
export const recordAt = (id: KeyId): string => `key:${id}`;
const tombstoneAt = (id: KeyId): string => `tombstone:${id}`;
/** The ids of a key's texts on a shelf, by the time of their end. The name of each text begins with this one. */
export const responsesAt = (shelf: Shelf, id: KeyId): string => `${shelf}s:${id}`;
/** The bytes of the texts on a shelf by the id of their key, and those of the whole site under an empty name. */
export const responseBytesAt = (shelf: Shelf): string => `${shelf}-bytes`;
const textsOf = (id: KeyId): string[] => shelves.flatMap((each) => [responsesAt(each, id), responseBytesAt(each)]);
export const idsAt = "keys";
export const peppersAt = "pepper";
/** Each entry has two fields: `key` is the subject (`subjectOf`), and `entry` is the audit entry as JSON. */
export const auditAt = "audit";
const replicaAt = "replica";

/**
 * Lua scripts, each executed in one step. Of two concurrent changes of a key only one succeeds, and nothing lapses in
 * between.
 */

/**
 * Drops the responses of a key, whose names begin with that of their list. The hash `<list>:bytes` has the bytes of each
 * response, and their sum stands at `responseBytesAt`.
 */
export const forgetResponsesLua = `
local function countBytes(sums, key, by)
  if by == 0 then return end
  redis.call("HINCRBY", sums, key, by)
  redis.call("HINCRBY", sums, "", by)
end
local function bytesOf(sums, key) return tonumber(redis.call("HGET", sums, key)) or 0 end
local function dropResponses(list, sums, key)
  for _, response in ipairs(redis.call("ZRANGE", list, 0, -1)) do redis.call("UNLINK", list .. ":" .. response) end
  redis.call("UNLINK", list, list .. ":bytes")
  countBytes(sums, key, -bytesOf(sums, key))
  redis.call("HDEL", sums, key)
end
`;

/**
 * KEYS: record, tombstone, ids, peppers, audit, and the texts with their bytes of each shelf. ARGV: id, version that is replaced or `nothing`, fingerprint of the
 * pepper, time when the record lapses, audit entry, maximum number of audit entries, number of the tombstone's fields
 * and values, the tombstone's fields and values, the record's fields and values.
 */
const writeKeyLua = `${forgetResponsesLua}
local peppers = redis.call("GET", KEYS[4])
if ARGV[2] == "nothing" then
  if not peppers then
    redis.call("SET", KEYS[4], ARGV[3])
  elseif not string.find(peppers, ARGV[3], 1, true) then
    return "foreign"
  end
else
  if not peppers then return "unfounded" end
  if redis.call("EXISTS", KEYS[1]) == 0 then return "conflict" end
  if (redis.call("HGET", KEYS[1], "version") or "0") ~= ARGV[2] then return "conflict" end
end
redis.call("DEL", KEYS[1], KEYS[2])
local first = 8 + tonumber(ARGV[7])
redis.call("HSET", KEYS[1], unpack(ARGV, first))
redis.call("PEXPIREAT", KEYS[1], ARGV[4])
if first > 8 then redis.call("HSET", KEYS[2], unpack(ARGV, 8, first - 1)) else
  for at = 6, #KEYS, 2 do dropResponses(KEYS[at], KEYS[at + 1], ARGV[1]) end
end
redis.call("SADD", KEYS[3], ARGV[1])
redis.call("XADD", KEYS[5], "MAXLEN", "~", ARGV[6], "*", "key", ARGV[1], "entry", ARGV[5])
return "written"
`;

/**
 * KEYS: record, tombstone, peppers, audit, and the texts with their bytes of each shelf. ARGV: id, audit entry, maximum number of audit entries. An emptied store
 * only gets the entry, because gateways may still know the key.
 */
const forgetKeyLua = `${forgetResponsesLua}
if redis.call("EXISTS", KEYS[3]) == 1 then
  if redis.call("EXISTS", KEYS[1]) == 1 then return "conflict" end
  if redis.call("DEL", KEYS[2]) == 0 then return "conflict" end
end
for at = 5, #KEYS, 2 do dropResponses(KEYS[at], KEYS[at + 1], ARGV[1]) end
redis.call("XADD", KEYS[4], "MAXLEN", "~", ARGV[3], "*", "key", ARGV[1], "entry", ARGV[2])
return "written"
`;

/** KEYS: peppers. ARGV: fingerprint of a pepper. The script does not found an emptied store. */
const addPepperLua = `
local peppers = redis.call("GET", KEYS[1])
if not peppers then return "unfounded" end
if not string.find(peppers, ARGV[1], 1, true) then redis.call("SET", KEYS[1], ARGV[1] .. "," .. peppers) end
return "written"
`;

const idsPerPage = 250;
const entriesPerPage = 500;

export class RedisKeyStore implements KeyStore {
  readonly #redis: RedisConnection;
  readonly #writeKey: RedisScript<unknown>;
  readonly #forgetKey: RedisScript<unknown>;
  readonly #addPepper: RedisScript<unknown>;
  readonly #afterlifeMs: number;
  readonly #connectToWait: (() => Promise<RedisConnection>) | undefined;

  constructor(
    redis: RedisConnection,
    options: {
      readonly afterlifeMs?: number;
      /** Opens a connection that may block for `replicaWaitMs`, because Redis answers nothing else on it meanwhile. */
      readonly connectToWait?: () => Promise<RedisConnection>;
    } = {},
  ) {
    this.#redis = redis;
    this.#writeKey = redis.script(writeKeyLua, 5 + shelves.length * 2);
    this.#forgetKey = redis.script(forgetKeyLua, 4 + shelves.length * 2);
    this.#addPepper = redis.script(addPepperLua, 1);
    this.#afterlifeMs = options.afterlifeMs ?? recordAfterlifeMs;
    this.#connectToWait = options.connectToWait;
  }

  async find(id: KeyId): Promise<FoundKey> {
    const [record, tombstone, founded] = await this.#redis.pipeline("find a key", (batch) =>
      batch.hgetall(recordAt(id)).hgetall(tombstoneAt(id)).exists(peppersAt),
    );
    if (founded !== 1) throw unfoundedStore();
    if (!isEmpty(record)) return { kind: "record", record: readStored(keyRecord, () => decode(record)) };
    if (!isEmpty(tombstone)) return { kind: "tombstone", tombstone: readStored(keyTombstone, () => decode(tombstone)) };
    return { kind: "absent" };
  }

  async issue(record: KeyRecord, entry: AuditEntry): Promise<void> {
    await this.#write({ record, entry, replaces: "nothing" });
  }

  async replace(record: KeyRecord, entry: AuditEntry): Promise<Written> {
    return this.#write({ record, entry, replaces: String(record.version - 1) });
  }

  async forget(id: KeyId, entry: AuditEntry): Promise<Written> {
    const names = [recordAt(id), tombstoneAt(id), peppersAt, auditAt, ...textsOf(id)];
    return this.#written(await this.#forgetKey("revoke a key", ...names, id, JSON.stringify(entry), auditEntriesMax));
  }

  async list(unread?: UnreadRecord[]): Promise<readonly KeyRecord[]> {
    const records = new Map<string, KeyRecord>();
    let cursor = "0";
    do {
      const [next, ids] = await this.#redis.run("list keys", (redis) =>
        redis.sscan(idsAt, cursor, "COUNT", idsPerPage),
      );
      const page = readStored(z.array(keyId), () => ids);
      for (const record of await this.#recordsOf(page, unread)) records.set(record.id, record);
      cursor = next;
    } while (cursor !== "0");
    return [...records.values()].sort((one, other) => one.createdAt - other.createdAt);
  }

  async log(query: LogQuery, unread?: UnreadRecord[]): Promise<readonly AuditEntry[]> {
    const rows: [string, string | undefined][] = [];
    let newest = "+";
    while (rows.length < query.entriesMax) {
      const page = await this.#redis.run("read the audit trail", (redis) =>
        redis.xrevrange(auditAt, newest, "-", "COUNT", entriesPerPage),
      );
      for (const [id, [, key, , text]] of page)
        if ((query.keys?.some((each) => each === key) ?? true) && fitsQuery(query, text)) rows.push([id, text]);
      const oldest = page.at(-1)?.[0];
      if (page.length < entriesPerPage || oldest === undefined) break;
      newest = `(${oldest}`;
    }
    return readEach(auditEntry, rows.slice(0, query.entriesMax), unread).toReversed();
  }

  async gateways(): Promise<readonly SiteGateway[]> {
    return gatewaysOf(this.#redis);
  }

  async ready(): Promise<void> {
    await this.#redis.run("answer a ping", (redis) => redis.ping());
  }

  async state(): Promise<{ readonly founded: boolean; readonly wallMs: number }> {
    const replies = await this.#redis.pipeline("tell its time", (batch) => batch.exists(peppersAt).time());
    const [founded, [seconds, microseconds]] = stateReply.parse(replies);
    return { founded: founded === 1, wallMs: seconds * 1_000 + microseconds / 1_000 };
  }

  async peppers(): Promise<readonly PepperFingerprint[]> {
    const kept = await this.#redis.run("compare the pepper", (redis) => redis.get(peppersAt));
    return readStored(z.array(pepperFingerprint), () => kept?.split(",") ?? []);
  }

  async addPepper(fingerprint: PepperFingerprint): Promise<void> {
    this.#written(await this.#addPepper("note a pepper", peppersAt, fingerprint));
  }

  /**
   * `WAIT` covers the writes of its own connection. `noteReplica` writes a note on that connection, after all writes
   * that must be confirmed. A replica that has the note therefore has all of those writes.
   */
  async awaitReplica(): Promise<Replication> {
    let waiting: RedisConnection | undefined;
    try {
      waiting = await this.#connectToWait?.();
      const redis = waiting ?? this.#redis;
      if ((await noteReplica(redis, "always")) === "none") return "none";
      const replicas = await redis.run("wait for a replica", (client) => client.wait(1, replicaWaitMs));
      return replicas > 0 ? "replicated" : "unconfirmed";
    } catch {
      return "unconfirmed";
    } finally {
      waiting?.close();
    }
  }

  async close(): Promise<void> {
    this.#redis.close();
  }

  async #write(change: { record: KeyRecord; entry: AuditEntry; replaces: string }): Promise<Written> {
    const { record, entry, replaces } = change;
    await assertActionRead(this.#redis, entry);
    const { id, digest, expiresAt, revokedAt } = record;
    const names = [recordAt(id), tombstoneAt(id), idsAt, peppersAt, auditAt, ...textsOf(id)];
    const tombstone = revokedAt === undefined ? fieldsOf({ digest, expiresAt }) : [];
    const values = [id, replaces, record.pepper, expiresAt + this.#afterlifeMs, JSON.stringify(entry), auditEntriesMax];
    const fields = [tombstone.length, ...tombstone, ...fieldsOf(record)];
    return this.#written(await this.#writeKey("keep a key", ...names, ...values, ...fields));
  }

  #written(reply: unknown): Written {
    if (reply === "unfounded") throw unfoundedStore();
    if (reply === "foreign") throw foreignPepper();
    return reply === "written" ? "written" : "conflict";
  }

  /**
   * Returns the records of `ids`, and removes the ids whose records have lapsed. An id is never issued again, so no key
   * can be lost.
   */
  async #recordsOf(ids: readonly KeyId[], unread?: UnreadRecord[]): Promise<KeyRecord[]> {
    if (ids.length === 0) return [];
    const replies = await this.#redis.pipeline("list keys", (batch) =>
      ids.reduce((commands, id) => commands.hgetall(recordAt(id)), batch),
    );
    const lapsed = ids.filter((_, at) => isEmpty(replies[at]));
    if (lapsed.length > 0) await this.#redis.run("forget lapsed keys", (redis) => redis.srem(idsAt, ...lapsed));
    const rows = ids.map((id, at) => [id, textOf(replies[at])] as const).filter(([, text]) => text !== "{}");
    return readEach(keyRecord, rows, unread);
  }
}

/**
 * Records in the store that it has a replica. A replica that is cut off is then missed, and the store does not count as
 * one without replicas. An operator who gives up replicas for good removes the note.
 */
export async function noteReplica(redis: RedisConnection, when: "new" | "always"): Promise<"none" | "noted"> {
  const replies = await redis.pipeline("tell of its replicas", (batch) => batch.info("replication").exists(replicaAt));
  const [info, noted] = z.tuple([z.string(), z.number()]).parse(replies);
  if (noted === 0 && !/^connected_slaves:[1-9]/m.test(info)) return "none";
  if (noted === 0 || when === "always") {
    await redis.run("note that it has a replica", (client) => client.set(replicaAt, "seen"));
  }
  return "noted";
}

/** Refuses a change whose action a gateway of the site cannot read. */
export async function assertActionRead(redis: RedisConnection, entry: AuditEntry): Promise<void> {
  if (isNew(entry.action)) assertRead([entry.action], await gatewaysOf(redis), entry);
}

async function gatewaysOf(redis: RedisConnection): Promise<readonly SiteGateway[]> {
  const [[seconds], notes] = gatewaysReply.parse(
    await redis.pipeline("tell its gateways", (batch) => batch.time().zrange("gateways", "0", "-1", "WITHSCORES")),
  );
  const sinceMs = seconds * 1_000 - gatewayIsThereForMs;
  return notes.flatMap((note, at) => {
    const notedAt = Number(notes[at + 1]);
    return at % 2 === 0 && notedAt > sinceMs ? [{ ...readGatewayNote(note), notedAt }] : [];
  });
}

const gatewaysReply = z.tuple([z.tuple([z.coerce.number(), z.coerce.number()]), z.array(z.string())]);
const stateReply = z.tuple([z.number(), z.tuple([z.coerce.number(), z.coerce.number()])]);
const hash = z.record(z.string(), z.string());

function isEmpty(reply: unknown): boolean {
  return Object.keys(hash.parse(reply)).length === 0;
}

function fieldsOf(value: object): string[] {
  return Object.entries(value).flatMap(([field, each]) => (each === undefined ? [] : [field, JSON.stringify(each)]));
}

export function decode(reply: unknown): unknown {
  return JSON.parse(textOf(reply));
}

/** Returns a hash whose fields hold JSON as one text of JSON. */
function textOf(reply: unknown): string {
  const fields = Object.entries(hash.parse(reply)).map(([field, text]) => `${JSON.stringify(field)}:${text}`);
  return `{${fields.join(",")}}`;
}
