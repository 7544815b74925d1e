import { expect, test } from "vitest";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { losesMachine, MachineRecords, type RecordChange } from "../../../services/gateway/fleet/machine-records.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { recordOf } from "./machines-of-a-fleet.ts";
import { until } from "../../harness/until.ts";

const timing = timingAt(1);

const log = { info: () => undefined, warn: () => undefined };
const keys = Array.from({ length: 3 }, () => newMachineKeyPair().publicKey);
/** A store in memory that counts how it is asked, and the follower of its records. */
async function followed(...first: MachineRecord[]) {
  const kept = new Map(first.map((each) => [each.name, each]));
  const asked = { lists: 0, finds: [] as string[], keys: 0 };
  const clock = new TurnableClock();
  let isAway = false;
  const answer = <Value>(value: Value): Promise<Value> =>
    isAway ? Promise.reject(new Error("away")) : Promise.resolve(value);
  const records = new MachineRecords({
    machines: {
      site: () => answer({ id: "s".repeat(22) }),
      list: () => {
        asked.lists += 1;
        return answer([...kept.values()]);
      },
      find: (name) => {
        asked.finds.push(name);
        return answer(kept.get(name));
      },
      findByKey: (publicKey) => {
        asked.keys += 1;
        return answer([...kept.values()].find((each) => each.publicKey === publicKey));
      },
    },
    timing,
    clock,
    log,
  });
  await records.load();
  const told: RecordChange[] = [];
  records.onChange((changes) => void told.push(...changes));
  return {
    records,
    clock,
    asked,
    told,
    away: (now: boolean) => (isAway = now),
    /** Puts a record into the store and tells of it. */
    put(each: MachineRecord): void {
      kept.set(each.name, each);
      records.follow.changed(each.name);
    },
    take(name: string): void {
      kept.delete(name);
      records.follow.changed(name);
    },
    move(from: string, each: MachineRecord): void {
      kept.delete(from);
      this.put(each);
    },
    untilTold: (count: number) => until(() => told.length >= count, { what: `${count} changes` }),
  };
}

test("a gateway's records of machines are read one by one as they change, and told with what was before", async () => {
  const store = await followed(recordOf("attic"), recordOf("cellar"));
  store.put(recordOf("attic", { version: 2, models: ["llama*"] }));
  await store.untilTold(1);
  expect(store.told).toMatchObject([{ name: "attic", before: { version: 1 }, after: { version: 2 } }]);
  expect([store.asked.lists, store.asked.finds]).toEqual([1, ["attic"]]);
  expect([store.records.permits("attic", "qwen"), store.records.permits("cellar", "qwen")]).toEqual([false, true]);
});

test("a gateway's records of machines know a renamed machine by both names until it has finished under the old one", async () => {
  const store = await followed(recordOf("attic", { publicKey: keys[0], models: ["small"] }));
  store.move("attic", recordOf("loft", { version: 2, publicKey: keys[0] }));
  await store.untilTold(1);
  expect(store.told.map(({ name, after }) => [name, after?.name])).toEqual([["loft", "loft"]]);
  expect((await store.records.findByKey(keys[0] ?? ""))?.name).toBe("loft");
  expect(store.records.permits("attic", "large")).toBe(false);
  store.clock.advance(timing.renamedWorksMs);
  expect(store.told.slice(1)).toMatchObject([{ name: "attic", after: undefined }]);
  expect(store.records.get("attic")).toBeUndefined();
  expect((await store.records.findByKey(keys[0] ?? ""))?.name).toBe("loft");
});

test.each<[string, Partial<MachineRecord> | undefined]>([
  ["revoked", { version: 3, revokedAt: 1 }],
  ["removed", undefined],
])("a gateway's records of machines end a renamed machine under both names when it is %s", async (_, fields) => {
  const store = await followed(recordOf("attic", { publicKey: keys[0] }));
  store.move("attic", recordOf("loft", { version: 2, publicKey: keys[0] }));
  await store.untilTold(1);
  if (fields === undefined) store.take("loft");
  else store.put(recordOf("loft", { publicKey: keys[0], ...fields }));
  await store.untilTold(3);
  expect(store.told.slice(1).map((change) => [change.name, losesMachine(change)])).toEqual([
    ["attic", true],
    ["loft", true],
  ]);
});

test("a gateway's records of machines end a renamed machine under its old name as soon as another machine has that", async () => {
  const store = await followed(recordOf("attic", { publicKey: keys[0] }));
  store.move("attic", recordOf("loft", { version: 2, publicKey: keys[0] }));
  await store.untilTold(1);
  store.put(recordOf("attic", { publicKey: keys[1], createdAt: 2 }));
  await store.untilTold(2);
  expect(store.told.slice(1).map((change) => [change.name, losesMachine(change)])).toEqual([["attic", true]]);
  store.clock.advance(timing.renamedWorksMs);
  expect(store.records.get("attic")?.publicKey).toBe(keys[1]);
});

test("a gateway's records of machines find a machine that another gateway has just paired, and ask the store for no key twice", async () => {
  const store = await followed();
  await expect(store.records.findByKey(keys[1] ?? "")).resolves.toBeUndefined();
  store.away(true);
  store.put(recordOf("attic", { publicKey: keys[1] }));
  await until(() => store.asked.finds.length === 1, { what: "a read that fails" });
  store.away(false);
  expect((await store.records.findByKey(keys[1] ?? ""))?.name).toBe("attic");
  expect((await store.records.findByKey(keys[1] ?? ""))?.name).toBe("attic");
  expect(store.asked.keys).toBe(2);
  expect(store.told).toMatchObject([{ name: "attic", before: undefined }]);
});

test("a gateway's records of machines are read again once the store is back, when it was away at a change", async () => {
  const store = await followed(recordOf("attic"));
  store.away(true);
  store.put(recordOf("attic", { version: 2, revokedAt: 2 }));
  await until(() => store.asked.finds.length === 1, { what: "a read that fails" });
  expect(store.records.barred("attic")).toBeUndefined();
  store.away(false);
  await until(
    () => {
      store.records.follow.heard();
      return store.records.barred("attic") === "revoked";
    },
    { what: "the revocation to be known" },
  );
});

test("a gateway's records of machines stay revoked when the store falls back to an older copy of itself", async () => {
  const revoked = recordOf("attic", { version: 3, publicKey: keys[2], revokedAt: 3 });
  const store = await followed(revoked);
  store.put(recordOf("attic", { version: 2, publicKey: keys[2] }));
  store.put(recordOf("cellar"));
  await store.untilTold(1);
  expect(store.told).toMatchObject([{ name: "cellar" }]);
  expect(store.records.barred("attic")).toBe("revoked");
  store.put(recordOf("attic", { version: 4, publicKey: keys[0] }));
  await store.untilTold(2);
  expect(store.records.barred("attic")).toBeUndefined();
  await expect(store.records.findByKey(keys[2] ?? "")).resolves.toBeUndefined();
});

test("a gateway's records of machines follow a name that was removed after its revocation and paired anew, between two reads", async () => {
  const store = await followed(recordOf("attic", { version: 3, publicKey: keys[2], revokedAt: 3 }));
  store.put(recordOf("attic", { createdAt: 2, version: 2, publicKey: keys[0] }));
  await store.untilTold(1);
  expect(store.records.barred("attic")).toBeUndefined();
  expect((await store.records.findByKey(keys[0] ?? ""))?.name).toBe("attic");
  await expect(store.records.findByKey(keys[2] ?? "")).resolves.toBeUndefined();
});

test("a gateway's records of machines that many machines changed at once are read with one question", async () => {
  const store = await followed();
  store.away(true);
  for (let at = 0; at < 40; at += 1) store.put(recordOf(`m${at}`));
  await until(() => store.asked.finds.length > 0, { what: "a read that fails" });
  store.away(false);
  store.records.follow.heard();
  await store.untilTold(40);
  expect([store.asked.lists, store.asked.finds.length]).toEqual([2, 1]);
});
