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
  machineOffer,
  type SeenMachine,
  type SiteRecord,
} from "../records/machine-record.ts";

/** A hash of two fields: the site's `id`, and as JSON what gateways `noted` of it. */
const siteAt = "site";

/** Ends the field of what a machine offered, beside the field of its time. Public keys have no colon. */
const offerSuffix = ":offer";

export class RedisMachineStore extends RedisRecords<MachineRecord> implements MachineStore {
  constructor(redis: RedisConnection) {
    super(redis, { at: "machines", noun: "machine", schema: machineRecord });
  }

  async site(): Promise<SiteRecord> {
    const read = () => this.redis.run("tell its site", (redis) => redis.hmget(siteAt, "id", "noted"));
    let [id, noted] = await read();
    if (id === null) {
      await this.redis.run("name its site", (redis) => redis.hsetnx(siteAt, "id", newToken()));
      [id, noted] = await read();
    }
    return readSite(id, noted);
  }

  async noteSite(reached: Partial<Omit<SiteRecord, "id">>): Promise<void> {
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

  async noteSeen(seen: ReadonlyMap<string, SeenMachine>): Promise<void> {
    if (seen.size === 0) return;
    const noted = [...seen].flatMap(([publicKey, { atMs, ...offer }]): [string, number | string][] => [
      [publicKey, Math.round(atMs)],
      [publicKey + offerSuffix, JSON.stringify(offer)],
    ]);
    await this.redis.run("note when machines were seen", (redis) => redis.hset(machineSeenAt, new Map(noted)));
  }

  async lastSeen(): Promise<ReadonlyMap<string, SeenMachine>> {
    const noted = await this.redis.run("tell when machines were seen", (redis) => redis.hgetall(machineSeenAt));
    const publicKeys = Object.keys(noted).filter((field) => !field.endsWith(offerSuffix));
    return new Map(
      publicKeys.map((publicKey) => {
        const offer = machineOffer.parse(JSON.parse(noted[publicKey + offerSuffix] ?? "{}"));
        return [publicKey, { atMs: Number(noted[publicKey]), ...offer }];
      }),
    );
  }

  async #findAt(index: string, value: string): Promise<MachineRecord | undefined> {
    const name = await this.redis.run("find a machine", (redis) => redis.hget(index, value));
    return name === null ? undefined : this.find(name);
  }
}
