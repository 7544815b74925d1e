import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { SqliteKeyChanges, SqliteKeyStore } from "#shared/store/sqlite-key-store.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { issueOn, keyChangesContract } from "./key-changes.contract.ts";
import { HeardChanges } from "./key-changes-heard.ts";
import { redisPlace, sqlitePlace } from "./key-store-place.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

keyChangesContract("Redis", () => redisPlace(server.url));
keyChangesContract("SQLite", sqlitePlace);

test("a SQLite store that is restored before the first look at its first change is a gap", async () => {
  const folder = folderOfTest();
  const database = openStateDatabase(folder);
  const keys = new SqliteKeyStore(database, { clock: systemClock });
  onTestFinished(() => keys.close());
  const looks: (() => void)[] = [];
  const every = (_: number, look: () => void) => ({ cancel() {}, ran: looks.push(look) });
  const heard = new HeardChanges(new SqliteKeyChanges(database, { clock: { every } }));
  await issueOn(keys);
  database.copyTo(join(folder, "backup"));
  await issueOn(keys);
  database.replaceBy(join(folder, "backup"));
  for (const look of [...looks, ...looks]) look();
  expect(heard.gaps).toBe(2);
});
