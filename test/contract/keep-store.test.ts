import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { setKeep } from "#shared/records/change-keep.ts";
import { removeRecord } from "#shared/records/change-record.ts";
import { keepForm } from "#shared/records/keep-record.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { issueOn } from "./key-changes.contract.ts";
import { redisPlace, sqlitePlace } from "./key-store-place.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

describe.each([
  ["Redis", () => redisPlace(server.url)],
  ["SQLite", sqlitePlace],
] as const)("the kept models of a site in %s", (_, makePlace) => {
  async function founded() {
    const place = await makePlace();
    const keys = await place.open();
    await issueOn(keys);
    const { keeps } = await place.openNamed();
    const means = { keys, keeps, clock: { wall: () => 1_800_000_000_000 }, actor: { by: "the operator" } };
    return { place, keys, keeps, means };
  }

  test("a model that one process keeps is kept for all, until one of them keeps it no longer", async () => {
    const { place, keeps, means } = await founded();
    expect((await setKeep("a/b:8b", { copies: 2 }, means)).outcome).toBe("changed");
    expect((await setKeep("a/b:8b", { copies: 2 }, means)).outcome).toBe("unchanged");
    await setKeep("llama3", { copies: 1, machines: ["attic"] }, means);
    const { keeps: elsewhere } = await place.openNamed();
    expect((await elsewhere.list()).map(({ name, copies, machines }) => [name, copies, machines])).toEqual([
      ["a/b:8b", 2, undefined],
      ["llama3", 1, ["attic"]],
    ]);
    await removeRecord(keepForm, "a/b:8b", { ...means, keeps: elsewhere });
    await expect(removeRecord(keepForm, "a/b:8b", means)).rejects.toMatchObject({
      code: "keep_not_found",
      param: "model",
    });
    expect((await keeps.list()).map(({ name }) => name)).toEqual(["llama3"]);
  });

  test("each change is in the trail, with its author and what was wished for before", async () => {
    const { keys, means } = await founded();
    await setKeep("llama3", { copies: 2 }, means);
    await setKeep("llama3", { copies: 1, machines: ["attic"] }, means);
    await removeRecord(keepForm, "llama3", means);
    const entries = await keys.log({ entriesMax: 3 });
    expect(entries.map(({ by, action, model, detail }) => [by, action, model, detail])).toEqual([
      ["the operator", "keep_set", "llama3", { keeps: "2 copies" }],
      ["the operator", "keep_set", "llama3", { keeps: "1 copy on attic", was: { keeps: "2 copies" } }],
      ["the operator", "keep_removed", "llama3", { was: { keeps: "1 copy on attic" } }],
    ]);
  });

  test("more copies than named machines are refused, with what would help", async () => {
    const { keeps, means } = await founded();
    const wish = { copies: 3, machines: ["attic", "cellar"] };
    await expect(setKeep("llama3", wish, means)).rejects.toMatchObject({
      code: "keep_change_refused",
      message: expect.stringMatching(/3 copies need as many machines.*Name more/),
    });
    expect(await keeps.list()).toEqual([]);
  });
});
