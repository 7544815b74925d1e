import { expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { NewestRecords, newestRecordsMax } from "../../../../services/gateway/keys/follow-key-changes.ts";
import { StoreOfATest } from "./keys-of-a-test.ts";

function aStore() {
  const keys = new StoreOfATest();
  const warned: string[] = [];
  const warn = (_fields: unknown, message: string): void => void warned.push(message);
  const newest = new NewestRecords({ keys, log: { warn: warn as never } });
  return { records: keys.records, warned, newest, put: () => keys.add().record };
}

test("an older record never takes the place of a newer one that was heard, and the loss is told once", async () => {
  const { records, warned, newest, put } = aStore();
  const before = put();
  const narrowed = { ...before, version: 1, scopes: ["a"] };
  expect(newest.hear(before.id, "changed")).toBe(true);
  newest.keep({ kind: "record", record: narrowed });
  expect(await newest.find(before.id)).toEqual({ kind: "record", record: narrowed });
  await newest.find(before.id);
  expect(warned).toHaveLength(1);
  const anew = { ...before, version: 1, scopes: ["b"] };
  records.set(before.id, anew);
  expect(await newest.find(before.id)).toEqual({ kind: "record", record: anew });
});

test("a revoked key stays revoked whatever the store says, and a key that is gone is not brought back", async () => {
  const { records, newest, put } = aStore();
  const [revoked, disabled] = [put(), put()];
  expect(newest.hear(revoked.id, "revoked")).toBe(false);
  expect(await newest.find(revoked.id)).toEqual({ kind: "absent" });
  newest.hear(disabled.id, "disabled");
  newest.keep({ kind: "record", record: { ...disabled, version: 1, disabledAt: 5 } });
  records.delete(disabled.id);
  expect(await newest.find(disabled.id)).toEqual({ kind: "absent" });
});

test("changes that only give are not kept, unless the key lost a right before", async () => {
  const { newest, put } = aStore();
  const { id } = put();
  for (const action of ["issued", "extended", "enabled", "repeppered"] as const) {
    expect(newest.hear(id, action)).toBe(false);
  }
  expect(newest.hear(id, "disabled")).toBe(true);
  newest.keep({ kind: "record", record: { ...put(), id, version: 1, disabledAt: 5 } });
  expect(newest.hear(id, "enabled")).toBe(true);
});

test("no more than newestRecordsMax are kept, and the log says so once", async () => {
  const { newest, put, warned } = aStore();
  const first = put();
  newest.hear(first.id, "revoked");
  for (let others = 0; others < newestRecordsMax + 5; others += 1) newest.hear(mintKeyToken().id, "revoked");
  expect(await newest.find(first.id)).toEqual({ kind: "record", record: first });
  expect(warned).toEqual(["more keys lost rights than this gateway keeps in mind"]);
});
