import { readdirSync, readFileSync } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, expect, test } from "vitest";
import { issueKey } from "#shared/records/issue-key.ts";
import type { KeyToken } from "#shared/keys/key-token.ts";
import { type KeyStoreSettings, keyStoreSettings } from "#shared/store/key-store-settings.ts";
import { openKeyStore } from "#shared/store/open-key-store.ts";
import { makePepper, pepperFile } from "#shared/store/state-database.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import { readConfig } from "#shared/process/config.ts";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const pepper = pepperText.parse("a pepper that is long enough to be one");
const otherPepper = pepperText.parse("another pepper, long enough to be one");

let folder: string;
beforeEach(() => void (folder = folderOfTest()));

const clock = new TurnableClock();

/** The fingerprint of the pepper that keys are issued under there. */
async function openAndClose(settings: KeyStoreSettings): Promise<string> {
  const opened = await openKeyStore(settings, { clock });
  await opened.keys.close();
  return opened.peppers.current.fingerprint;
}
async function issueOn(settings: KeyStoreSettings): Promise<KeyToken> {
  const { keys, peppers } = await openKeyStore(settings, { clock });
  const means = { keys, peppers, clock, actor: { by: "the operator" } };
  const { token } = await issueKey({ name: "alice", scopes: ["*"], ttlMs: 60_000 }, means);
  await keys.close();
  return token;
}
const refusal = (exitCode: number, message: string): object => ({
  name: "StartFailure",
  exitCode,
  message: expect.stringContaining(message),
});

test("a state folder gets one pepper and one database, for its owner's eyes only, and keeps them", async () => {
  const stateDir = join(folder, "deep", "state");
  const first = await openAndClose({ stateDir });
  expect(await openAndClose({ stateDir })).toBe(first);
  const modes = await Promise.all(
    [".", "pepper", "trunkline.db"].map(async (name) => (await stat(join(stateDir, name))).mode & 0o777),
  );
  // Windows keeps no modes: a file has the access list of its folder.
  expect(modes).toEqual(process.platform === "win32" ? [0o666, 0o666, 0o666] : [0o700, 0o600, 0o600]);
});

test("a folder that cannot be made is named, with the variable that chooses another", async () => {
  await writeFile(join(folder, "file"), "");
  const opening = openAndClose({ stateDir: join(folder, "file", "state") });
  await expect(opening).rejects.toMatchObject(refusal(exitCodes.cannotCreate, "set TRUNKLINE_STATE_DIR"));
});

test("another pepper than the one the keys were made with is refused, wherever it comes from", async () => {
  const made = await openAndClose({ stateDir: folder });
  await issueOn({ stateDir: folder });
  const fromEnvironment = openAndClose({ stateDir: folder, keyPepper: pepper });
  await expect(fromEnvironment).rejects.toMatchObject(
    refusal(exitCodes.config, "another pepper: set TRUNKLINE_KEY_PEPPER"),
  );
  const kept = await readFile(join(folder, "pepper"));
  await rm(join(folder, "pepper"));
  await expect(openAndClose({ stateDir: folder })).rejects.toMatchObject(refusal(exitCodes.config, "restore the file"));
  await writeFile(join(folder, "pepper"), kept);
  expect(await openAndClose({ stateDir: folder })).toBe(made);
});

test("any pepper will do until a key was issued, and then that key's", async () => {
  await openAndClose({ stateDir: folder, keyPepper: pepper });
  await issueOn({ stateDir: folder, keyPepper: otherPepper });
  const first = openAndClose({ stateDir: folder, keyPepper: pepper });
  await expect(first).rejects.toMatchObject(refusal(exitCodes.config, "another pepper"));
  expect(await openAndClose({ stateDir: folder, keyPepper: otherPepper })).toBe(otherPepper.fingerprint);
});

test("when an old pepper is no longer given, the start says that keys may still be under it", async () => {
  await issueOn({ stateDir: folder, keyPepper: pepper });
  await openAndClose({ stateDir: folder, keyPepper: otherPepper, keyPepperAlso: pepper });
  const warnings: string[] = [];
  const log = { info: () => undefined, warn: (text: string) => void warnings.push(text) };
  const { keys } = await openKeyStore({ stateDir: folder, keyPepper: otherPepper }, { clock, log });
  await keys.close();
  expect(warnings).toEqual([expect.stringContaining("not judged here")]);
});

test("a pepper file that holds no pepper is refused and left as it is", async () => {
  await writeFile(join(folder, "pepper"), "short");
  await expect(openAndClose({ stateDir: folder })).rejects.toMatchObject(
    refusal(exitCodes.config, "at least 32 bytes"),
  );
  expect(await readFile(join(folder, "pepper"), "utf8")).toBe("short");
});

test("a state file that is no database, or a newer one, is refused and left as it is", async () => {
  await writeFile(join(folder, "trunkline.db"), "no database ".repeat(100));
  await expect(openAndClose({ stateDir: folder })).rejects.toMatchObject(
    refusal(exitCodes.cannotCreate, "trunkline.db"),
  );
  await rm(join(folder, "trunkline.db"));
  const newer = new DatabaseSync(join(folder, "trunkline.db"));
  newer.exec("PRAGMA user_version = 1000");
  newer.close();
  await expect(openAndClose({ stateDir: folder })).rejects.toMatchObject(refusal(exitCodes.config, "newer Trunkline"));
});

test("Redis without a pepper is refused before Redis is asked for", async () => {
  const opening = openAndClose({ stateDir: folder, redisUrl: "redis://127.0.0.1:1" });
  await expect(opening).rejects.toMatchObject(refusal(exitCodes.config, "TRUNKLINE_KEY_PEPPER"));
});

test.each(["localhost:6379", "http://localhost", "redis://:100%@localhost", "a,b"])("%s is no Redis URL", (url) => {
  const read = () => readConfig(keyStoreSettings, { TRUNKLINE_REDIS_URL: url });
  expect(read).toThrow(/TRUNKLINE_REDIS_URL must be a URL/);
});

test("a file system without hard links gets a pepper too, and no process replaces the pepper of another", () => {
  const file = pepperFile(folder);
  const noLinks = (): never => {
    throw Object.assign(new Error("operation not supported"), { code: "ENOTSUP" });
  };
  makePepper(file, noLinks);
  const first = readFileSync(file, "utf8");
  expect(first.trim().length).toBeGreaterThan(30);
  makePepper(file, noLinks);
  expect(readFileSync(file, "utf8")).toBe(first);
  expect(readdirSync(folder).filter((name) => name.startsWith("pepper"))).toEqual(["pepper"]);
});
