import type { AuditEntry } from "../records/audit-entry.ts";
import type { Written } from "../records/key-store.ts";
import { machineJoinsAt, machineKeysAt, machineSeenAt, RedisRecords } from "./redis-records.ts";
import type { RedisConnection } from "../process/redis-connection.ts";
import { newToken } from "../protocol/identifiers.ts";
import {
  machineRecord,
  readSite,
  type MachineRecord,
  type MachineStore,
  type Site,
} from "../records/machine-record.ts";

/** A hash of two fields: the site's `id`, and as JSON what gateways `noted` of it. */
const siteAt = "site";

export class RedisMachineStore extends RedisRecords<MachineRecord> implements MachineStore {
  constructor(redis: RedisConnection) {
    super(redis, { at: "machines", noun: "machine", schema: machineRecord });
  }

  async site(): Promise<Site> {
    const read = () => this.redis.run("tell its site", (redis) => redis.hmget(siteAt, "id", "noted"));
    let [id, noted] = await read();
    if (id === null) {
      await this.redis.run("name its site", (redis) => redis.hsetnx(siteAt, "id", newToken()));
      [id, noted] = await read();
    }
    return readSite(id, noted);
  }

  async noteSite(reached: Partial<Omit<Site, "id">>): Promise<void> {
    await this.redis.run("note its site", (redis) => redis.hset(siteAt, "noted", JSON.stringify(reached)));
  }

  async findByKey(publicKey: string): Promise<MachineRecord | undefined> {
    const record = await this.#findAt(machineKeysAt, publicKey);
    return record?.publicKey === publicKey ? record : undefined;
  }

  async findByJoin(id: string): Promise<MachineRecord | undefined> {
    const record = await this.#findAt(machineJoinsAt, id);
    return record?.join?.id === id ? record : undefined;
  }

  pair(record: MachineRecord & { readonly publicKey: string }, entry: AuditEntry): Promise<Written | "taken"> {
    const { name, version } = record;
    return this.change({ kind: "pair", name, replaces: version - 1, record, entry });
  }

  rename(from: string, record: MachineRecord, entry: AuditEntry): Promise<Written | "taken"> {
    return this.change({ kind: "rename", name: from, replaces: record.version - 1, record, entry });
  }

  async noteSeen(seen: ReadonlyMap<string, number>): Promise<void> {
    if (seen.size === 0) return;
    const times = new Map([...seen].map(([publicKey, wallMs]) => [publicKey, Math.round(wallMs)]));
    await this.redis.run("note when machines were seen", (redis) => redis.hset(machineSeenAt, times));
  }

  async lastSeen(): Promise<ReadonlyMap<string, number>> {
    const times = await this.redis.run("tell when machines were seen", (redis) => redis.hgetall(machineSeenAt));
    return new Map(Object.entries(times).map(([publicKey, wallMs]) => [publicKey, Number(wallMs)]));
  }

  async #findAt(index: string, value: string): Promise<MachineRecord | undefined> {
    const name = await this.redis.run("find a machine", (redis) => redis.hget(index, value));
    return name === null ? undefined : this.find(name);
  }
}
