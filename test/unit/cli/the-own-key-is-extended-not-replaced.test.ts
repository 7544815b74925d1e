import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { keyId } from "#shared/keys/key-token.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { Lifecycle } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { ownKey } from "../../../services/cli/site/up-state.ts";
import { commandLine } from "./command-line.ts";

/** Windows keeps no modes: a file has the access list of its folder. */
const ownerOnly = process.platform === "win32" ? 0o666 : 0o600;

const dayMs = 86_400_000;

/** Starts of `trunkline up`, as far as its own key is concerned, on one state folder. */
async function starts() {
  const line = await commandLine();
  const { folder, clock } = line;
  const logged: string[] = [];
  const log = createLog({ level: "warn", name: "test", write: (text) => logged.push(text) });
  const opened: OpenedKeyStore[] = [];
  onTestFinished(() => Promise.all(opened.map(({ keys }) => keys.close())).then(() => undefined));
  return {
    ...line,
    logged,
    start: async () => {
      const store = await openKeyStore({ stateDir: folder }, { clock });
      opened.push(store);
      const lifecycle = new Lifecycle({ clock, log });
      const key = await ownKey({ stateDir: folder, store, lifecycle, clock, log });
      return { key, id: keyId.parse(key.split("_")[1]), store, stop: () => lifecycle.stop(0) };
    },
    actions: async () =>
      ((await line.json("log")) as { action: string; by: string }[]).map(({ action, by }) => [action, by]),
  };
}

test("the first start makes a key for a year, kept for its owner alone, and the next start shows the same", async () => {
  const { start, folder, json, actions } = await starts();
  const first = await start();
  await first.stop();
  const file = join(folder, "key");
  expect([readFileSync(file, "utf8"), statSync(file).mode & 0o777]).toEqual([`${first.key}\n`, ownerOnly]);
  expect(await json("show", first.id)).toMatchObject({ name: "trunkline up", expires_at: "2027-01-01T00:00:00.000Z" });
  expect((await start()).key).toBe(first.key);
  expect(await actions()).toEqual([["issued", "trunkline up"]]);
});

test("a start with less than 90 days left extends the key, and does not replace it", async () => {
  const { start, clock, json, actions, verdictOf } = await starts();
  const first = await start();
  await first.stop();
  clock.advance(275 * dayMs);
  await (await start()).stop();
  expect(await actions()).toHaveLength(1);
  clock.advance(1);
  const second = await start();
  expect([second.key, await verdictOf(first.key)]).toEqual([first.key, "valid"]);
  expect(await json("show", second.id)).toMatchObject({ expires_at: "2027-10-03T00:00:00.001Z" });
  expect(await actions()).toEqual([
    ["issued", "trunkline up"],
    ["extended", "trunkline up"],
  ]);
});

test("a key is extended while the process runs, for as long as it runs", async () => {
  const { start, clock, verdictOf, actions } = await starts();
  const { key, stop } = await start();
  await clock.advanceAwaiting(3 * 365 * dayMs);
  expect(await verdictOf(key)).toBe("valid");
  expect((await actions()).map(([action]) => action)).toEqual(["issued", "extended", "extended", "extended"]);
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
  expect(await actions()).toHaveLength(1);
  await clock.advanceAwaiting(dayMs);
  expect([logged.length, (await actions()).map(([action]) => action)]).toEqual([1, ["issued", "extended"]]);
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

test.each([
  ["expired while nothing ran", async ({ clock }: Awaited<ReturnType<typeof starts>>) => clock.advance(400 * dayMs)],
  ["is no key", ({ folder }: { folder: string }) => writeFileSync(join(folder, "key"), "sk-not-ours\n")],
])("a kept key that %s is replaced at the start", async (_, spoil) => {
  const all = await starts();
  const first = await all.start();
  await first.stop();
  await spoil(all);
  const second = await all.start();
  expect([second.key === first.key, await all.verdictOf(second.key)]).toEqual([false, "valid"]);
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
