import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { mintKeyToken, type KeyId } from "#shared/keys/key-token.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import { pageOfKeys } from "#shared/admin/key-operations.ts";

const pepper = pepperText.parse("a pepper that is long enough to be one");
const nowMs = 1_000_000;

function keyMadeAt(createdAt: number, fields: Partial<KeyRecord> = {}): KeyRecord {
  const token = mintKeyToken();
  return {
    id: token.id,
    version: 0,
    kind: "model",
    name: "alice",
    digest: token.digest(pepper),
    pepper: pepper.fingerprint,
    scopes: ["*"],
    createdAt,
    expiresAt: nowMs + 1,
    ...fields,
  };
}

test("all pages together are all keys, the oldest first, in whatever order a store lists those of one moment", () => {
  const times = fc.array(fc.nat(3), { maxLength: 20 });
  fc.assert(
    fc.property(times, fc.integer({ min: 1, max: 7 }), fc.infiniteStream(fc.boolean()), (createdAt, limit, turns) => {
      const records = createdAt.map((each) => keyMadeAt(each));
      const seen: KeyRecord[] = [];
      let pages = 0;
      for (let after: KeyId | undefined; ; after = seen.at(-1)?.id) {
        const listed = turns.next().value === true ? records : records.toReversed();
        const { page, hasMore } = pageOfKeys(listed, { limit, after }, nowMs);
        seen.push(...page);
        pages += 1;
        if (!hasMore) break;
        expect(page).toHaveLength(limit);
      }
      expect(pages).toBe(Math.max(1, Math.ceil(records.length / limit)));
      expect(new Set(seen)).toEqual(new Set(records));
      expect(seen.map((each) => each.createdAt)).toEqual(createdAt.toSorted((one, other) => one - other));
    }),
  );
});

test("a page goes on after a key that has another state by now", () => {
  const [first, second] = [keyMadeAt(1, { disabledAt: 2 }), keyMadeAt(2)];
  expect(pageOfKeys([first, second], { state: "valid", limit: 5, after: first.id }, nowMs)).toEqual({
    page: [second],
    hasMore: false,
  });
});

test("after a key that is gone there is no telling where to go on", () => {
  const wish = { limit: 5, after: mintKeyToken().id };
  expect(() => pageOfKeys([keyMadeAt(1)], wish, nowMs)).toThrow(expect.objectContaining({ param: "after" }));
});
