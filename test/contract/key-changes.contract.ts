import type { KeyChanges } from "#shared/records/key-changes.ts";
import { describe, expect, test } from "vitest";
import { changeKey } from "#shared/records/change-key.ts";
import { issueKey } from "#shared/records/issue-key.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { until } from "../harness/until.ts";
import { HeardChanges } from "./key-changes-heard.ts";
import { meansOf } from "./key-store-means.ts";
import type { KeyPlace } from "./key-store-place.ts";

const toldWithinMs = 1_000;

export async function issueOn(keys: KeyStore, ttlMs = 60_000): Promise<KeyId> {
  return (await issueKey({ name: "alice", scopes: ["*"], ttlMs }, meansOf(keys))).token.id;
}

export function keyChangesContract(adapter: string, makePlace: () => Promise<KeyPlace>): void {
  /** A store with a key in it, and a follower that is told of whatever comes next. */
  async function followed() {
    const place = await makePlace();
    const keys = await place.open();
    const first = await issueOn(keys);
    const changes = await place.openChanges();
    return { place, keys, first, changes, heard: await followedBy(changes) };
  }
  async function followedBy(changes: KeyChanges): Promise<HeardChanges> {
    const heard = new HeardChanges(changes);
    await heard.untilTold("gap");
    return heard;
  }

  describe(`changes of keys in ${adapter}`, () => {
    test("a follower begins with a gap, and is told nothing of what was before", async () => {
      const { keys, heard } = await followed();
      const next = await issueOn(keys);
      await heard.untilIds(1);
      expect(heard.ids).toEqual([next]);
      expect(heard.gaps).toBe(1);
    });

    test("changes by this process and by others are told in order, and none is missed", async () => {
      const { place, keys, first, heard } = await followed();
      const another = await followedBy(await place.openChanges());
      const stores = [keys, await place.open(), await place.open()];
      const work = stores.map(async (each) => {
        for (let issued = 0; issued < 20; issued += 1) {
          const id = await issueOn(each);
          await changeKey(id, { action: issued % 2 === 0 ? "disabled" : "revoked" }, meansOf(each));
        }
      });
      await Promise.all(work);
      const trail = (await keys.log({ entriesMax: 1_000 })).map(({ key }) => key);
      expect(trail).toHaveLength(1 + 3 * 20 * 2);
      await heard.untilIds(trail.length - 1);
      await another.untilIds(trail.length - 1);
      expect([first, ...heard.ids]).toEqual(trail);
      expect([first, ...another.ids]).toEqual(trail);
    });

    test("a change is told within a second, and while nothing changes the store is heard again and again", async () => {
      const { place, heard } = await followed();
      await issueOn(await place.open());
      await heard.untilIds(1, toldWithinMs);
      for (let times = 0; times < 2; times += 1) await heard.untilTold("heard", { since: heard.mark() });
      expect(heard.since(0)).not.toContain("away");
    });

    test("a key that is revoked after its record has lapsed is told too", async () => {
      const { place, heard } = await followed();
      const keys = await place.open({ afterlifeMs: 0 });
      const id = await issueOn(keys, 50);
      await until(async () => (await keys.find(id)).kind === "tombstone", { what: "the record to lapse" });
      await changeKey(id, { action: "revoked" }, meansOf(keys));
      await heard.untilIds(2);
      expect(heard.ids).toEqual([id, id]);
    });

    test("the first key of a store is told, and the store is heard from then on", async () => {
      const place = await makePlace();
      const keys = await place.open();
      const heard = new HeardChanges(await place.openChanges());
      await until(() => heard.mark() > 0, { what: "the empty store to be looked at" });
      const id = await issueOn(keys);
      const issued = heard.mark();
      await heard.untilTold("heard", { since: issued });
      const last = await issueOn(keys);
      await until(() => heard.ids.includes(last), { what: "the next key to be told" });
      expect(heard.ids.includes(id) || heard.since(issued).has("gap")).toBe(true);
    });

    test("a store that loses its keys is away", async () => {
      const { place, heard } = await followed();
      const mark = heard.mark();
      await place.empty();
      await heard.untilTold("away", { since: mark, timeoutMs: 2_500 });
    });

    test("nothing is told after it was closed", async () => {
      const { place, keys, changes, heard } = await followed();
      const another = await followedBy(await place.openChanges());
      changes.close();
      const mark = heard.mark();
      await issueOn(keys);
      await another.untilIds(1);
      expect(heard.since(mark)).toEqual(new Set());
    });
  });
}
