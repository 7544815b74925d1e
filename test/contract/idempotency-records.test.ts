import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import {
  type IdempotencyRecords,
  idempotencyKeysMax,
  OwnIdempotencyRecords,
} from "../../services/gateway/jobs/idempotency-records.ts";
import { RedisIdempotencyRecords } from "../../services/gateway/jobs/redis-idempotency-records.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const forMs = 60_000;

function idempotencyRecordsIn(kind: string, open: () => IdempotencyRecords): void {
  describe(`idempotency records in ${kind}`, () => {
    let keys = 0;
    const nameOfNewKey = (): { keyId: string; name: string } => ({ keyId: `key${(keys += 1)}`, name: "n" });
    const mine = { owner: "one", digest: "d" };
    const yours = { owner: "other", digest: "d" };

    test("go to the first request, and any other one is told whose it is and where it runs", async () => {
      const [records, name] = [open(), nameOfNewKey()];
      expect(await records.put(name, mine, { forMs })).toEqual(mine);
      expect(await records.put(name, yours, { forMs })).toEqual(mine);
      const placed = { ...mine, machine: "attic", job: "j" };
      await records.put(name, placed, { from: "one", forMs });
      expect(await records.put(name, yours, { forMs })).toEqual(placed);
      expect(await records.put({ ...name, keyId: "another" }, yours, { forMs })).toEqual(yours);
    });

    test("are changed and freed by their owner alone", async () => {
      const [records, name] = [open(), nameOfNewKey()];
      await records.put(name, mine, { forMs });
      await records.put(name, mine, { from: "other", forMs: 0 });
      expect(await records.put(name, yours, { from: "other", forMs })).toEqual(mine);
      expect(await records.put(name, yours, { forMs })).toEqual(mine);
      expect(await records.put(nameOfNewKey(), yours, { from: "other", forMs })).toBeUndefined();
      await records.put(name, yours, { from: "one", forMs });
      await records.put(name, mine, { from: "one", forMs: 0 });
      expect(await records.put(name, mine, { forMs })).toEqual(yours);
      await records.put(name, mine, { from: "other", forMs: 0 });
      expect(await records.put(name, mine, { forMs })).toEqual(mine);
    });

    test("end by themselves", async () => {
      const [records, name] = [open(), nameOfNewKey()];
      await records.put(name, mine, { forMs: 50 });
      const taken = async (): Promise<boolean> => (await records.put(name, yours, { forMs }))?.owner === "other";
      await until(taken, { what: "the record to end" });
    });

    test("stay bounded for each key after a short record of it has ended", async () => {
      const [records, { keyId }] = [open(), nameOfNewKey()];
      for (let name = 1; name < idempotencyKeysMax; name += 1)
        await records.put({ keyId, name: String(name) }, mine, { forMs });
      await records.put({ keyId, name: "short" }, mine, { forMs: 50 });
      const taken = async (): Promise<boolean> =>
        (await records.put({ keyId, name: "short" }, yours, { forMs }))?.owner === "other";
      await until(taken, { what: "the short record to end" });
      expect(await records.put({ keyId, name: "more" }, mine, { forMs })).toBeUndefined();
    });

    test("are bounded for each key, and a name that is free again makes room", async () => {
      const [records, { keyId }] = [open(), nameOfNewKey()];
      for (let name = 0; name < idempotencyKeysMax; name += 1)
        await records.put({ keyId, name: String(name) }, mine, { forMs });
      expect(await records.put({ keyId, name: "more" }, mine, { forMs })).toBeUndefined();
      expect(await records.put({ keyId, name: "7" }, yours, { forMs })).toEqual(mine);
      await records.put({ keyId, name: "7" }, mine, { from: "one", forMs: 0 });
      expect(await records.put({ keyId, name: "more" }, mine, { forMs })).toEqual(mine);
    });
  });
}

const own = new OwnIdempotencyRecords(clock);
idempotencyRecordsIn("memory", () => own);

describe.skipIf(lentOnly("redis"))("with Redis", () => {
  let redis: OwnServer;
  let store: OpenedKeyStore;
  let records: IdempotencyRecords;
  beforeAll(async () => {
    redis = await startRedisServer();
    store = await openKeyStore(
      { stateDir: "/nowhere", redisUrl: redis.url, keyPepper: pepperText.parse(testPepper) },
      { clock },
    );
    if (store.state.kind !== "redis") throw new Error("the store is not on Redis");
    records = new RedisIdempotencyRecords(store.state.redis);
  });
  afterAll(async () => {
    await store.keys.close();
    await redis[Symbol.asyncDispose]();
  });
  idempotencyRecordsIn("Redis", () => records);
});
