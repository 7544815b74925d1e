import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openKeyStore } from "#shared/store/open-key-store.ts";
import { Lifecycle } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { keepAdminKey, ownKey } from "../../../services/cli/site/up-state.ts";
import { commandLine } from "./command-line.ts";

/** Windows keeps no modes: a file has the access list of its folder. */
const ownerOnly = process.platform === "win32" ? 0o666 : 0o600;

const dayMs = 86_400_000;

/** Starts of `trunkline up`, as far as its own keys are concerned, on one state folder. */
async function starts() {
  const line = await commandLine();
  const { folder, clock } = line;
  const logged: string[] = [];
  const log = createLog({ level: "warn", name: "test", write: (text) => logged.push(text) });
  const file = join(folder, "admin-key");
  return {
    ...line,
    logged,
    file,
    start: async () => {
      const store = await openKeyStore({ stateDir: folder }, { clock });
      onTestFinished(() => store.keys.close());
      const lifecycle = new Lifecycle({ clock, log });
      const means = { stateDir: folder, store, lifecycle, clock, log };
      const key = await ownKey(means);
      await keepAdminKey(means);
      const adminKey = readFileSync(file, "utf8").trim();
      return { key, adminKey, id: adminKey.split("_")[2] ?? "", stop: () => lifecycle.stop(0) };
    },
  };
}

test("the first start makes an admin key for 90 days beside the other, for its owner alone, and the next keeps both", async () => {
  const { start, file, json, verdictOf } = await starts();
  const first = await start();
  await first.stop();
  expect([readFileSync(file, "utf8"), statSync(file).mode & 0o777]).toEqual([`${first.adminKey}\n`, ownerOnly]);
  expect(first.adminKey).toMatch(/^trunkline_admin_/);
  expect(await verdictOf(first.adminKey)).toBe("valid");
  expect(await json("show", first.id)).toMatchObject({
    kind: "admin",
    name: "trunkline up, for operators",
    expires_at: "2026-04-01T00:00:00.000Z",
  });
  const second = await start();
  expect([second.key, second.adminKey]).toEqual([first.key, first.adminKey]);
});

test("it is extended before it expires, while the process runs and at a start, and never replaced", async () => {
  const { start, clock, verdictOf, json, logged } = await starts();
  const { adminKey, id, stop } = await start();
  await clock.advanceAwaiting(200 * dayMs);
  expect(await verdictOf(adminKey)).toBe("valid");
  await stop();
  expect(clock.timersWaiting).toBe(0);
  clock.advance(60 * dayMs);
  expect((await start()).adminKey).toBe(adminKey);
  expect(await json("show", id)).toMatchObject({ state: "valid", expires_at: "2026-12-17T00:00:00.000Z" });
  expect(logged).toEqual([]);
});

test.each([
  ["expired while nothing ran", async ({ clock }: Awaited<ReturnType<typeof starts>>) => clock.advance(100 * dayMs)],
  ["was taken back", async ({ keys }, { id }) => keys("revoke", id)],
  ["is a key that calls models", async ({ file }, { key }) => writeFileSync(file, `${key}\n`)],
  ["is no key", async ({ file }) => writeFileSync(file, "sk-not-ours\n")],
] satisfies [
  string,
  (all: Awaited<ReturnType<typeof starts>>, first: { id: string; key: string }) => Promise<unknown>,
][])("one that %s is replaced at the start, and the other key stays", async (_, spoil) => {
  const all = await starts();
  const first = await all.start();
  await first.stop();
  await spoil(all, first);
  const second = await all.start();
  expect(second.adminKey).not.toBe(first.adminKey);
  expect(second.adminKey).toMatch(/^trunkline_admin_/);
  expect([await all.verdictOf(second.adminKey), second.key]).toEqual(["valid", first.key]);
});
