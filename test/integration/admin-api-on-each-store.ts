import { afterAll, beforeAll, describe } from "vitest";
import type { IssuedKey } from "#shared/records/issue-key.ts";
import type { MachineStore } from "#shared/records/machine-record.ts";
import { redisPlace, sqlitePlace } from "../contract/key-store-place.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { AdminOnStore, type Method, type Told } from "../unit/gateway/operations/admin-on-a-store.ts";

/** The admin API on a store of its own, and an admin who asks it. */
interface Managed {
  readonly api: AdminOnStore;
  readonly admin: IssuedKey;
  readonly machines: MachineStore;
  readonly means: { readonly machines: MachineStore } & Pick<AdminOnStore, "keys" | "clock">;
  readonly ask: (method: Method, path: string, body?: unknown) => Promise<Told>;
  /** Asks with the key of a viewer. */
  readonly read: (path: string) => Promise<Told>;
  /** The changes in the trail, without the keys that were issued. */
  readonly changes: () => Promise<unknown>;
}

/** Declares the tests once for SQLite and once for Redis. */
export function onEachStore(declare: (managed: () => Promise<Managed>) => void): void {
  let redis: SomeServer;
  beforeAll(async () => void (redis = await redisUrl()));
  afterAll(() => redis.stop());
  describe.each([
    ["SQLite", sqlitePlace],
    ["Redis", () => redisPlace(redis.url)],
  ])("the admin API on %s", (_, makePlace) => {
    declare(async () => {
      const place = await makePlace();
      const machines = await place.openMachines();
      const api = new AdminOnStore(await place.open(), machines, await place.openNamed());
      const admin = await api.issue({ kind: "admin", name: "root" });
      const ask = (method: Method, path: string, body?: unknown) =>
        api.ask(method, path, { key: admin.token.reveal(), body });
      const read = async (path: string) =>
        api.ask("GET", path, { key: (await api.issue({ kind: "viewer" })).token.reveal() });
      const changes = async () => {
        const { data } = (await read("/log")).json as { data: { action: string }[] };
        return data.filter(({ action }) => action !== "issued");
      };
      return { api, admin, machines, means: { machines, keys: api.keys, clock: api.clock }, ask, read, changes };
    });
  });
}
