import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { dayMs } from "#shared/process/clock.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import type { StateStore } from "#shared/store/open-key-store.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";
import { type EndUsers, endUsersKeptDays, openEndUsers } from "#shared/usage/end-users.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

async function inRedis(): Promise<StateStore> {
  const redis = await connectRedis({ url: server.url, keyPrefix: `${randomUUID()}:` });
  onTestFinished(() => redis.close());
  return { kind: "redis", redis };
}

function inSqlite(): StateStore {
  const database = openStateDatabase(folderOfTest());
  onTestFinished(() => database.close());
  return { kind: "sqlite", database };
}

/** The first of a month. */
const firstAtMs = Date.parse("2026-11-01");
const usersMax = 3;
const textOf = (name?: Uint8Array): string | undefined => name && Buffer.from(name).toString();

describe.each([
  ["Redis", inRedis],
  ["SQLite", inSqlite],
])("end users of a key in %s", (_, open) => {
  const use = (users: EndUsers, digest: string, days = 0, periodAtMs = firstAtMs + days * dayMs) =>
    users.note({ keyId: "app", digest, sealed: Buffer.from(digest), dayAtMs: firstAtMs + days * dayMs, periodAtMs });

  test("a user with use in the running period never falls out, and those beyond the bound get no place at any gateway", async () => {
    const state = await open();
    const [one, other] = [openEndUsers(state, usersMax), openEndUsers(state, usersMax)];
    for (const digest of ["a", "b", "c"]) expect(await use(one, digest)).toBe(true);
    for (let name = 0; name < 20; name += 1) expect(await use(name % 2 ? one : other, `flood${name}`)).toBe(false);
    for (const digest of ["a", "b", "c"]) expect(await use(other, digest)).toBe(true);
    // The same month, in which `a` was used on the second day too.
    expect(await use(one, "a", 1, firstAtMs)).toBe(true);
    expect(await use(other, "d", 1, firstAtMs)).toBe(false);
    // Where the period is the day, the place of `b` or `c` is free.
    expect(await use(other, "d", 1)).toBe(true);
    expect(await use(one, "e", 1)).toBe(true);
    expect(await use(other, "f", 1)).toBe(false);
    expect(await use(one, "a", 1)).toBe(true);
    expect((await one.sealedNames(["app:a", "app:b", "app:c", "app:d"])).map(textOf)).toEqual([
      "a",
      undefined,
      undefined,
      "d",
    ]);
  });

  test("the users of one key take no place of another one's", async () => {
    const users = openEndUsers(await open(), 1);
    expect(await use(users, "a")).toBe(true);
    const another = { digest: "b", sealed: Buffer.from("b"), dayAtMs: firstAtMs, periodAtMs: firstAtMs };
    expect(await users.note({ ...another, keyId: "other" })).toBe(true);
    expect(await users.sealedNames(["other:a"])).toEqual([undefined]);
  });

  test("a name is dropped once its user was away for as long as rows of users are kept", async () => {
    const users = openEndUsers(await open(), usersMax);
    await use(users, "a");
    await use(users, "b", 1);
    await use(users, "c", endUsersKeptDays + 1);
    const names = await users.sealedNames(["app:a", "app:b", "app:c"]);
    expect(names.map(textOf)).toEqual([undefined, "b", "c"]);
  });
});
