import { afterAll, beforeAll, expect, test } from "vitest";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { issueKey } from "#shared/records/issue-key.ts";
import { keyStoreContract } from "./key-store.contract.ts";
import { meansOf } from "./key-store-means.ts";
import { redisPlace, sqlitePlace } from "./key-store-place.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

keyStoreContract("Redis", () => redisPlace(server.url));
keyStoreContract("SQLite", sqlitePlace);

test("a key is not issued into a file of SQLite that was removed, where nobody else would find it", async () => {
  const place = await sqlitePlace();
  const keys = await place.open();
  const key = { name: "alice", scopes: ["*"], ttlMs: 60_000 };
  await issueKey(key, meansOf(keys));
  await place.empty();
  await expect(issueKey(key, meansOf(keys))).rejects.toMatchObject({ code: "backend_unavailable" });
});
