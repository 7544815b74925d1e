import type { KeyChangesListener } from "#shared/records/key-changes.ts";
import { setImmediate } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { RunningRequests } from "../../../../services/gateway/keys/authenticate.ts";
import { followKeyChanges } from "../../../../services/gateway/keys/follow-key-changes.ts";
import { KnownKeys } from "../../../../services/gateway/keys/known-keys.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";
import { peppers, StoreOfATest } from "./keys-of-a-test.ts";

let store: StoreOfATest;
let running: RunningRequests;
let told: KeyChangesListener;
beforeEach(() => {
  const clock = new TurnableClock();
  store = new StoreOfATest();
  running = new RunningRequests();
  const knownKeys = new KnownKeys({ keys: store, peppers, clock, awayMs: 60_000, onOldPepper: () => undefined });
  const changes = { follow: (listener: KeyChangesListener) => void (told = listener), close: () => undefined };
  followKeyChanges({
    changes,
    keys: store,
    knownKeys,
    running,
    records: {},
    log: { info: () => undefined },
  });
});

function begin(fields: Partial<KeyRecord> = {}): { record: KeyRecord; leaving: AbortController; end: () => void } {
  const { record } = store.add({ expiresAt: Number.MAX_SAFE_INTEGER, ...fields });
  const leaving = new AbortController();
  return { record, leaving, end: running.begin(record, leaving) };
}
const cutWith = async ({ leaving }: { leaving: AbortController }): Promise<string | undefined> => {
  await setImmediate();
  return leaving.signal.reason instanceof Fault ? leaving.signal.reason.code : undefined;
};

test.each([
  ["revoked", { revokedAt: 1 }, "key_invalid"],
  ["disabled", { disabledAt: 1 }, "key_invalid"],
  ["removed with its record", undefined, "key_invalid"],
  ["extended", { expiresAt: Number.MAX_SAFE_INTEGER }, undefined],
  ["expired meanwhile", { expiresAt: 0 }, undefined],
])("a key that was %s has its own requests cut with %3$s, and none that ended before", async (_, fields, code) => {
  const [request, other, ended] = [begin(), begin(), new AbortController()];
  running.begin(request.record, ended)();
  if (fields === undefined) store.records.delete(request.record.id);
  else store.change(request.record.id, fields);
  told.onChange(request.record.id);
  expect(await cutWith(request)).toBe(code);
  expect([await cutWith(other), await cutWith({ leaving: ended })]).toEqual([undefined, undefined]);
});

test("after a gap every key with running requests is looked at", async () => {
  const [revoked, kept] = [begin(), begin()];
  store.change(revoked.record.id, { revokedAt: 1 });
  told.onGap();
  expect(await cutWith(revoked)).toBe("key_invalid");
  expect(await cutWith(kept)).toBeUndefined();
});

test("a key that cannot be looked at just then is looked at as soon as the store is heard", async () => {
  const request = begin();
  store.change(request.record.id, { revokedAt: 1 });
  store.away = true;
  told.onChange(request.record.id);
  told.onAway();
  expect(await cutWith(request)).toBeUndefined();
  store.away = false;
  told.onHeard();
  expect(await cutWith(request)).toBe("key_invalid");
});

test("nothing is kept of keys without requests, and the store is not asked about them", async () => {
  const { record, end } = begin();
  end();
  expect([...running.keyIds]).toEqual([]);
  told.onChange(record.id);
  await setImmediate();
  expect(store.asked).toBe(0);
});
