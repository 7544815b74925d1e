import { subjectOf } from "../records/key-changes.ts";
import type { z } from "zod";
import type { RedisConnection, RedisScript } from "../process/redis-connection.ts";
import { type NamedStores, openNamed } from "../records/named-records.ts";
import { auditEntriesMax, type AuditEntry } from "../records/audit-entry.ts";
import {
  readEach,
  readRecord,
  type RecordStore,
  unfoundedStore,
  type UnreadRecord,
  type Written,
} from "../records/key-store.ts";
import { assertActionRead, auditAt, peppersAt } from "./redis-key-store.ts";

/** A hash that maps every public key that was ever accepted to the name of its machine, at last. */
export const machineKeysAt = "machine-keys";
/** A hash that maps the id of each join line to the name of its machine. */
export const machineJoinsAt = "machine-joins";
/** A hash that maps the public keys of machines to the time when they were last heard, and with `:offer` to what they offered. */
export const machineSeenAt = "machine-seen";

/**
 * KEYS: records, peppers, audit, machine-keys, machine-joins, machine-seen. ARGV: `write`, `pair`, `rename` or
 * `remove`; name and version of the record that is replaced; name, text, public key and id of the join line of the new
 * record, the last two empty if it has none; subject of the audit entry, audit entry, maximum number of
 * audit entries.
 */
const writeRecordLua = `
if redis.call("EXISTS", KEYS[2]) == 0 then return "unfounded" end
local text = redis.call("HGET", KEYS[1], ARGV[2])
local kept = text and cjson.decode(text) or { version = 0 }
if kept.version ~= tonumber(ARGV[3]) then return "conflict" end
if ARGV[1] == "rename" and redis.call("HEXISTS", KEYS[1], ARGV[4]) == 1 then return "taken" end
if ARGV[1] == "pair" and redis.call("HEXISTS", KEYS[4], ARGV[6]) == 1 then return "taken" end
redis.call("HDEL", KEYS[1], ARGV[2])
if kept.join then redis.call("HDEL", KEYS[5], kept.join.id) end
if kept.publicKey and kept.publicKey ~= ARGV[6] then redis.call("HDEL", KEYS[6], kept.publicKey, kept.publicKey .. ":offer") end
if ARGV[1] ~= "remove" then
  redis.call("HSET", KEYS[1], ARGV[4], ARGV[5])
  if ARGV[6] ~= "" then redis.call("HSET", KEYS[4], ARGV[6], ARGV[4]) end
  if ARGV[7] ~= "" then redis.call("HSET", KEYS[5], ARGV[7], ARGV[4]) end
end
redis.call("XADD", KEYS[3], "MAXLEN", "~", ARGV[10], "*", "key", ARGV[8], "entry", ARGV[9])
return "written"
`;

/** A record of a machine, a route or a kept model, as far as the script knows it. */
interface IndexedRecord {
  readonly name: string;
  readonly version: number;
  readonly publicKey?: string | undefined;
  readonly join?: { readonly id: string } | undefined;
}

interface RedisRecordsOptions<Kept> {
  /** A hash that maps each name to its record as JSON. */
  readonly at: string;
  readonly noun: string;
  readonly schema: z.ZodType<Kept>;
}

interface Change<Kept> {
  readonly kind: "write" | "pair" | "rename" | "remove";
  readonly name: string;
  readonly replaces: number;
  /** Undefined if the record is removed. */
  readonly record?: Kept;
  readonly entry: AuditEntry;
}

/** Records by their names in Redis, beside the keys. */
export class RedisRecords<Kept extends IndexedRecord> implements RecordStore<Kept> {
  protected readonly redis: RedisConnection;
  readonly #options: RedisRecordsOptions<Kept>;
  readonly #write: RedisScript<unknown>;

  constructor(redis: RedisConnection, options: RedisRecordsOptions<Kept>) {
    this.redis = redis;
    this.#options = options;
    this.#write = redis.script(writeRecordLua, 6);
  }

  async list(unread?: UnreadRecord[]): Promise<readonly Kept[]> {
    const { at, noun, schema } = this.#options;
    const records = await this.redis.run(`list ${noun}s`, (redis) => redis.hgetall(at));
    return readEach(schema, Object.entries(records), unread).toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  async find(name: string): Promise<Kept | undefined> {
    const { at, noun, schema } = this.#options;
    const text = await this.redis.run(`find a ${noun}`, (redis) => redis.hget(at, name));
    return text === null ? undefined : readRecord(schema, text);
  }

  async write(record: Kept, entry: AuditEntry): Promise<Written> {
    const { name, version } = record;
    const written = await this.change({ kind: "write", name, replaces: version - 1, record, entry });
    return written === "written" ? "written" : "conflict";
  }

  async remove({ name, version }: Kept, entry: AuditEntry): Promise<Written> {
    const written = await this.change({ kind: "remove", name, replaces: version, entry });
    return written === "written" ? "written" : "conflict";
  }

  protected async change({ kind, name, replaces, record, entry }: Change<Kept>): Promise<Written | "taken"> {
    const { at, noun } = this.#options;
    await assertActionRead(this.redis, entry);
    const places = [at, peppersAt, auditAt, machineKeysAt, machineJoinsAt, machineSeenAt];
    const text = record === undefined ? "" : JSON.stringify(record);
    const values = [kind, name, replaces, record?.name ?? "", text, record?.publicKey ?? "", record?.join?.id ?? ""];
    const audited = [subjectOf(entry), JSON.stringify(entry), auditEntriesMax];
    const reply = await this.#write(`change a ${noun}`, ...places, ...values, ...audited);
    if (reply === "unfounded") throw unfoundedStore();
    return reply === "written" || reply === "taken" ? reply : "conflict";
  }
}

export function redisNamed(redis: RedisConnection): NamedStores {
  return openNamed((form) => new RedisRecords(redis, form));
}
