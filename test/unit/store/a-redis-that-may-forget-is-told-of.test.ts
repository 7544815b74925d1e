import { expect, test } from "vitest";
import { redisDoubts } from "#shared/store/open-key-store.ts";

const info = (fields: Record<string, string>): string =>
  ["# Memory", ...Object.entries(fields).map(([name, value]) => `${name}:${value}`), ""].join("\r\n");
const sound = { maxmemory: "536870912", maxmemory_policy: "noeviction", aof_enabled: "1" };

test.each([
  ["keeps all that it is told", {}, []],
  ["drops keys when it is full", { maxmemory_policy: "allkeys-lru" }, [/noeviction/]],
  ["would drop keys, but is never full", { maxmemory_policy: "allkeys-lru", maxmemory: "0" }, []],
  ["forgets at a restart", { aof_enabled: "0" }, [/appendonly/]],
])("a Redis that %s", (_, fields, doubts) => {
  expect(redisDoubts(info({ ...sound, ...fields }))).toEqual(doubts.map((each) => expect.stringMatching(each)));
});

test("a Redis that says nothing of itself is not doubted", () => {
  expect(redisDoubts("")).toEqual([]);
});
