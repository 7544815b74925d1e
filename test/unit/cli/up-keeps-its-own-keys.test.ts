import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { keyId } from "#shared/keys/key-token.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
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
  const file = join(folder, "admin-key");
  const logged: string[] = [];
  const log = createLog({ level: "warn", name: "test", write: (text) => logged.push(text) });
  const opened: OpenedKeyStore[] = [];
  onTestFinished(() => Promise.all(opened.map(({ keys }) => keys.close())).then(() => undefined));
  return {
    ...line,
    logged,
    file,
    start: async () => {
      const store = await openKeyStore({ stateDir: folder }, { clock });
      opened.push(store);
      const lifecycle = new Lifecycle({ clock, log });
      const dependencies = { stateDir: folder, store, lifecycle, clock, log };
      const key = await ownKey(dependencies);
      const adminId = await keepAdminKey(dependencies);
      const adminKey = readFileSync(file, "utf8").trim();
      return { key, id: keyId.parse(key.split("_")[1]), adminKey, adminId, store, stop: () => lifecycle.stop(0) };
    },
    actions: async (id: string) =>
      ((await line.json("log", "--key", id)) as { action: string; by: string }[]).map(
        ({ action, by }) => `${action} by ${by}`,
      ),
  };
}

test("the first start makes a key for a year and an admin key for 90 days, for their owner alone, and the next keeps both", async () => {
  const { start, folder, file, json, actions, verdictOf } = await starts();
  const first = await start();
  await first.stop();
  expect(readFileSync(join(folder, "key"), "utf8")).toBe(`${first.key}\n`);
  expect([join(folder, "key"), file].map((path) => statSync(path).mode & 0o777)).toEqual([ownerOnly, ownerOnly]);
  const name = "trunkline up";
  expect(await json("show", first.id)).toMatchObject({ name, expires_at: "2027-01-01T00:00:00.000Z" });
  const forOperators = { kind: "admin", name: `${name}, for operators`, expires_at: "2026-04-01T00:00:00.000Z" };
  expect(await json("show", first.adminId)).toMatchObject(forOperators);
  expect([first.adminKey, await verdictOf(first.adminKey)]).toEqual([
    expect.stringMatching(/^trunkline_admin_/),
    "valid",
  ]);
  const second = await start();
  expect([second.key, second.adminKey]).toEqual([first.key, first.adminKey]);
  expect(await actions(first.id)).toEqual(["issued by trunkline up"]);
});

test("a start with less than 90 days left extends the key, and does not replace it", async () => {
  const { start, clock, json, actions, verdictOf } = await starts();
  const first = await start();
  await first.stop();
  clock.advance(275 * dayMs);
  await (await start()).stop();
  expect(await actions(first.id)).toHaveLength(1);
  clock.advance(1);
  const second = await start();
  expect([second.key, await verdictOf(first.key)]).toEqual([first.key, "valid"]);
  expect(await json("show", second.id)).toMatchObject({ expires_at: "2027-10-03T00:00:00.001Z" });
  expect(await actions(first.id)).toEqual(["issued by trunkline up", "extended by trunkline up"]);
});

test("keys of up are extended while the process runs, for as long as it runs", async () => {
  const { start, clock, verdictOf, actions, logged } = await starts();
  const { id, key, adminKey, stop } = await start();
  await clock.advanceAwaiting(3 * 365 * dayMs);
  expect([await verdictOf(key), await verdictOf(adminKey)]).toEqual(["valid", "valid"]);
  expect([(await actions(id)).length, logged]).toEqual([4, []]);
  await stop();
  expect(clock.timersWaiting).toBe(0);
});

test("an extension that fails is logged, and tried again the next day", async () => {
  const { start, clock, logged, actions } = await starts();
  const { store, id } = await start();
  await clock.advanceAwaiting(275 * dayMs);
  vi.spyOn(store.keys, "replace").mockRejectedValueOnce(new Error("no room left"));
  await clock.advanceAwaiting(dayMs);
  expect(logged).toEqual([expect.stringMatching(new RegExp(`no room left.*${id}.*could not be extended`))]);
  expect(await actions(id)).toHaveLength(1);
  await clock.advanceAwaiting(dayMs);
  expect([logged.length, (await actions(id)).length]).toEqual([1, 2]);
});

test("a key that was taken back stays so while the process runs, and the next start makes another", async () => {
  const { start, clock, keys, verdictOf, logged } = await starts();
  const first = await start();
  await keys("revoke", first.id);
  await clock.advanceAwaiting(300 * dayMs);
  expect([await verdictOf(first.key), logged]).toEqual(["invalid", []]);
  await first.stop();
  const second = await start();
  expect(second.key).not.toBe(first.key);
  expect(await verdictOf(second.key)).toBe("valid");
});

type Starts = Awaited<ReturnType<typeof starts>>;
test.each<[string, (all: Starts, key: string) => unknown]>([
  ["expired while nothing ran", ({ clock }) => clock.advance(100 * dayMs)],
  ["is a key that calls models", ({ file }, key) => writeFileSync(file, `${key}\n`)],
  ["is no key", ({ file }) => writeFileSync(file, "sk-not-ours\n")],
])("a kept admin key that %s is replaced at the start, and the other key stays", async (_, spoil) => {
  const all = await starts();
  const first = await all.start();
  await first.stop();
  spoil(all, first.key);
  const second = await all.start();
  expect([second.adminKey === first.adminKey, second.key]).toEqual([false, first.key]);
  expect([second.adminKey, await all.verdictOf(second.adminKey)]).toEqual([
    expect.stringMatching(/^trunkline_admin_/),
    "valid",
  ]);
});

test("a store that never had a key is begun anew, and the log says so", async () => {
  const { start, folder, logged, verdictOf } = await starts();
  const first = await start();
  await first.stop();
  await first.store.keys.close();
  for (const ending of ["", "-wal", "-shm"]) rmSync(join(folder, `trunkline.db${ending}`), { force: true });
  const second = await start();
  expect([second.key === first.key, await verdictOf(second.key)]).toEqual([false, "valid"]);
  expect(logged).toEqual([expect.stringContaining("begun anew")]);
});
