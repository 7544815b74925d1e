import type { Result } from "ioredis";
import { auditEntriesMax, subjectOf, type AuditEntry } from "../keys/audit-entry.ts";
import { unfoundedStore, type Written } from "../keys/key-store.ts";
import { auditAt, peppersAt } from "../keys/redis-key-store.ts";
import type { RedisConnection } from "../process/redis-connection.ts";
import { newToken } from "../protocol/identifiers.ts";
import { readRecord, readSite, type MachineRecord, type MachineStore, type Site } from "./machine-record.ts";

/** A hash that maps each name to its record as JSON. */
const machinesAt = "machines";
/** A hash that maps every public key that was ever accepted to the name of its machine, at last. */
const keysAt = "machine-keys";
/** A hash that maps the id of each join line to the name of its machine. */
const joinsAt = "machine-joins";
/** A hash that maps the public keys of machines to the time when they were last heard. */
const seenAt = "machine-seen";
/** A hash of two fields: the site's `id`, and as JSON what gateways `noted` of it. */
const siteAt = "site";

/**
 * KEYS: machines, peppers, audit, machine-keys, machine-joins, machine-seen. ARGV: `write`, `pair`, `rename` or
 * `remove`; name and version of the record that is replaced; name, text, public key and id of the join line of the new
 * record, the last two empty if it has none; subject of the audit entry, audit entry, maximum number of audit entries.
 */
const writeMachineLua = `
if redis.call("EXISTS", KEYS[2]) == 0 then return "unfounded" end
local text = redis.call("HGET", KEYS[1], ARGV[2])
local kept = text and cjson.decode(text) or { version = 0 }
if kept.version ~= tonumber(ARGV[3]) then return "conflict" end
if ARGV[1] == "rename" and redis.call("HEXISTS", KEYS[1], ARGV[4]) == 1 then return "taken" end
if ARGV[1] == "pair" and redis.call("HEXISTS", KEYS[4], ARGV[6]) == 1 then return "taken" end
redis.call("HDEL", KEYS[1], ARGV[2])
if kept.join then redis.call("HDEL", KEYS[5], kept.join.id) end
if kept.publicKey and kept.publicKey ~= ARGV[6] then redis.call("HDEL", KEYS[6], kept.publicKey) end
if ARGV[1] ~= "remove" then
  redis.call("HSET", KEYS[1], ARGV[4], ARGV[5])
  if ARGV[6] ~= "" then redis.call("HSET", KEYS[4], ARGV[6], ARGV[4]) end
  if ARGV[7] ~= "" then redis.call("HSET", KEYS[5], ARGV[7], ARGV[4]) end
end
redis.call("XADD", KEYS[3], "MAXLEN", "~", ARGV[10], "*", "key", ARGV[8], "entry", ARGV[9])
return "written"
`;

declare module "ioredis" {
  interface RedisCommander<Context> {
    writeMachine(...keysAndValues: (string | number)[]): Result<unknown, Context>;
  }
}

interface Change {
  readonly kind: "write" | "pair" | "rename" | "remove";
  readonly name: string;
  readonly replaces: number;
  /** Undefined if the record is removed. */
  readonly record?: MachineRecord;
  readonly entry: AuditEntry;
}

/** Records of machines in Redis, beside the keys. */
export class RedisMachineStore implements MachineStore {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
    redis.define("writeMachine", { lua: writeMachineLua, numberOfKeys: 6 });
  }

  async site(): Promise<Site> {
    const read = () => this.#redis.run("tell its site", (redis) => redis.hmget(siteAt, "id", "noted"));
    let [id, noted] = await read();
    if (id === null) {
      await this.#redis.run("name its site", (redis) => redis.hsetnx(siteAt, "id", newToken()));
      [id, noted] = await read();
    }
    return readSite(id, noted);
  }

  async noteSite(reached: Partial<Omit<Site, "id">>): Promise<void> {
    await this.#redis.run("note its site", (redis) => redis.hset(siteAt, "noted", JSON.stringify(reached)));
  }

  async list(): Promise<readonly MachineRecord[]> {
    const records = await this.#redis.run("list machines", (redis) => redis.hvals(machinesAt));
    return records.map(readRecord).toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  async find(name: string): Promise<MachineRecord | undefined> {
    const record = await this.#redis.run("find a machine", (redis) => redis.hget(machinesAt, name));
    return record === null ? undefined : readRecord(record);
  }

  async findByKey(publicKey: string): Promise<MachineRecord | undefined> {
    const record = await this.#findAt(keysAt, publicKey);
    return record?.publicKey === publicKey ? record : undefined;
  }

  async findByJoin(id: string): Promise<MachineRecord | undefined> {
    const record = await this.#findAt(joinsAt, id);
    return record?.join?.id === id ? record : undefined;
  }

  async write(record: MachineRecord, entry: AuditEntry): Promise<Written> {
    const { name, version } = record;
    const written = await this.#change({ kind: "write", name, replaces: version - 1, record, entry });
    return written === "written" ? "written" : "conflict";
  }

  pair(record: MachineRecord & { readonly publicKey: string }, entry: AuditEntry): Promise<Written | "taken"> {
    const { name, version } = record;
    return this.#change({ kind: "pair", name, replaces: version - 1, record, entry });
  }

  rename(from: string, record: MachineRecord, entry: AuditEntry): Promise<Written | "taken"> {
    return this.#change({ kind: "rename", name: from, replaces: record.version - 1, record, entry });
  }

  async remove({ name, version }: MachineRecord, entry: AuditEntry): Promise<Written> {
    const written = await this.#change({ kind: "remove", name, replaces: version, entry });
    return written === "written" ? "written" : "conflict";
  }

  async noteSeen(seen: ReadonlyMap<string, number>): Promise<void> {
    if (seen.size === 0) return;
    const times = new Map([...seen].map(([publicKey, wallMs]) => [publicKey, Math.round(wallMs)]));
    await this.#redis.run("note when machines were seen", (redis) => redis.hset(seenAt, times));
  }

  async lastSeen(): Promise<ReadonlyMap<string, number>> {
    const times = await this.#redis.run("tell when machines were seen", (redis) => redis.hgetall(seenAt));
    return new Map(Object.entries(times).map(([publicKey, wallMs]) => [publicKey, Number(wallMs)]));
  }

  async #findAt(index: string, value: string): Promise<MachineRecord | undefined> {
    const name = await this.#redis.run("find a machine", (redis) => redis.hget(index, value));
    return name === null ? undefined : this.find(name);
  }

  async #change({ kind, name, replaces, record, entry }: Change): Promise<Written | "taken"> {
    const places = [machinesAt, peppersAt, auditAt, keysAt, joinsAt, seenAt];
    const { name: newName = "", publicKey = "", join } = record ?? {};
    const text = record === undefined ? "" : JSON.stringify(record);
    const values = [kind, name, replaces, newName, text, publicKey, join?.id ?? "", subjectOf(entry)];
    const reply = await this.#redis.run("change a machine", (redis) =>
      redis.writeMachine(...places, ...values, JSON.stringify(entry), auditEntriesMax),
    );
    if (reply === "unfounded") throw unfoundedStore();
    return reply === "written" || reply === "taken" ? reply : "conflict";
  }
}
