import type { Result } from "ioredis";
import { auditEntriesMax, subjectOf, type AuditEntry } from "../keys/audit-entry.ts";
import { readStored, unfoundedStore, type Written } from "../keys/key-store.ts";
import { auditAt, peppersAt } from "../keys/redis-key-store.ts";
import type { RedisConnection } from "../process/redis-connection.ts";
import { machineRecord, type MachineRecord, type MachineStore } from "./machine-record.ts";

/** A hash that maps each name to its record as JSON. */
const machinesAt = "machines";

/**
 * KEYS: machines, peppers, audit. ARGV: name, version that is replaced, new record or an empty text, subject of the
 * audit entry, audit entry, maximum number of audit entries.
 */
const writeMachineLua = `
if redis.call("EXISTS", KEYS[2]) == 0 then return "unfounded" end
local kept = redis.call("HGET", KEYS[1], ARGV[1])
local version = kept and cjson.decode(kept).version or 0
if version ~= tonumber(ARGV[2]) then return "conflict" end
if ARGV[3] == "" then redis.call("HDEL", KEYS[1], ARGV[1]) else redis.call("HSET", KEYS[1], ARGV[1], ARGV[3]) end
redis.call("XADD", KEYS[3], "MAXLEN", "~", ARGV[6], "*", "key", ARGV[4], "entry", ARGV[5])
return "written"
`;

declare module "ioredis" {
  interface RedisCommander<Context> {
    writeMachine(...keysAndValues: (string | number)[]): Result<unknown, Context>;
  }
}

/** Records of machines in Redis, beside the keys. */
export class RedisMachineStore implements MachineStore {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
    redis.define("writeMachine", { lua: writeMachineLua, numberOfKeys: 3 });
  }

  async list(): Promise<readonly MachineRecord[]> {
    const records = await this.#redis.run("list machines", (redis) => redis.hvals(machinesAt));
    return records.map(recordIn).toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  async find(name: string): Promise<MachineRecord | undefined> {
    const record = await this.#redis.run("find a machine", (redis) => redis.hget(machinesAt, name));
    return record === null ? undefined : recordIn(record);
  }

  write(record: MachineRecord, entry: AuditEntry): Promise<Written> {
    const { name, version } = record;
    return this.#write({ name, replaces: version - 1, record: JSON.stringify(record), entry });
  }

  remove({ name, version }: MachineRecord, entry: AuditEntry): Promise<Written> {
    return this.#write({ name, replaces: version, record: "", entry });
  }

  async #write(change: {
    readonly name: string;
    readonly replaces: number;
    readonly record: string;
    readonly entry: AuditEntry;
  }): Promise<Written> {
    const { name, replaces, record, entry } = change;
    const places = [machinesAt, peppersAt, auditAt];
    const values = [name, replaces, record, subjectOf(entry), JSON.stringify(entry), auditEntriesMax];
    const reply = await this.#redis.run("change a machine", (redis) => redis.writeMachine(...places, ...values));
    if (reply === "unfounded") throw unfoundedStore();
    return reply === "written" ? "written" : "conflict";
  }
}

function recordIn(text: string): MachineRecord {
  return readStored(machineRecord, () => JSON.parse(text));
}
