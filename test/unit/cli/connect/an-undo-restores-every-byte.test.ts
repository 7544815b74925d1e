import { chmod, readdir, readFile, rm, stat, symlink, writeFile, lstat, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Connections, isChanged, readText } from "../../../../services/cli/connect/connections.ts";
import type { PlannedFile } from "../../../../services/cli/connect/plan-connection.ts";
import { folderOfTest } from "../../../harness/temporary-folder.ts";

async function home() {
  const folder = folderOfTest();
  const connections = new Connections({ home: folder, platform: "linux", environment: {} });
  const plan = (file: string, after: string, { holdsKey = true } = {}): PlannedFile => {
    const path = join(folder, file);
    return { file: path, before: readText(path), after, holdsKey, overwrites: [] };
  };
  const write = (...files: readonly PlannedFile[]): void => connections.write("claude", files, { earlier: undefined });
  const undo = (): void => connections.undo("claude", found());
  const found = () => connections.find("claude") ?? expect.fail("there is no record");
  return { folder, connections, plan, write, undo, found, at: (file: string) => join(folder, file) };
}

const modeOf = async (file: string): Promise<number> => (await stat(file)).mode & 0o777;

test("an undo restores the bytes and the mode of a file, and removes a file that was not there", async () => {
  const { plan, write, undo, at, connections } = await home();
  const before = '\uFEFF{\r\n\t"a": 1 }  \n\n';
  await writeFile(at("settings.json"), before);
  await chmod(at("settings.json"), 0o666);
  write(plan("settings.json", "{}"), plan("deep/own.toml", "x = 1\n"));
  expect(await readFile(at("settings.json"), "utf8")).toBe("{}");
  expect(await modeOf(at("settings.json"))).toBe(0o600);
  expect(await modeOf(at("deep/own.toml"))).toBe(0o600);
  undo();
  expect(await readFile(at("settings.json"), "utf8")).toBe(before);
  expect(await modeOf(at("settings.json"))).toBe(0o666);
  expect(await readdir(at("deep"))).toEqual([]);
  expect(connections.find("claude")).toBeUndefined();
});

test("a file that holds no key keeps its mode, and the record is for its owner only", async () => {
  const { plan, write, at, folder } = await home();
  await writeFile(at("settings.json"), "{}", { mode: 0o644 });
  await chmod(at("settings.json"), 0o644);
  write(plan("settings.json", '{"a": 1}', { holdsKey: false }));
  expect(await modeOf(at("settings.json"))).toBe(0o644);
  expect(await modeOf(join(folder, ".local/state/trunkline/connections/claude.json"))).toBe(0o600);
});

test("a symbolic link stays one, and its target is written and restored", async () => {
  const { plan, write, undo, at } = await home();
  await mkdir(at("dotfiles"));
  await writeFile(at("dotfiles/settings.json"), "before");
  await symlink(at("dotfiles/settings.json"), at("settings.json"));
  write(plan("settings.json", "after"));
  expect(await readFile(at("dotfiles/settings.json"), "utf8")).toBe("after");
  undo();
  expect(await readFile(at("dotfiles/settings.json"), "utf8")).toBe("before");
  expect((await lstat(at("settings.json"))).isSymbolicLink()).toBe(true);
});

test("a file that cannot be written leaves the others as they were, and no record", async () => {
  const { connections, plan, write, at } = await home();
  await writeFile(at("a"), "before");
  await writeFile(at("no-folder"), "");
  const planned = [plan("a", "after"), { ...plan("b", "new"), file: at("no-folder/b"), before: undefined }];
  expect(() => write(...planned)).toThrow(/no-folder\/b cannot be written/);
  expect(await readFile(at("a"), "utf8")).toBe("before");
  expect((await readdir(at("."))).toSorted()).toEqual([".local", "a", "no-folder"]);
  expect(connections.find("claude")).toBeUndefined();
});

test("a file counts as changed once it is neither what was written nor what was before", async () => {
  const { plan, write, found, at } = await home();
  await writeFile(at("a"), "before");
  write(plan("a", "after"), plan("b", "new"));
  const changed = (): readonly string[] =>
    found()
      .files.filter(isChanged)
      .map(({ file }) => file);
  expect(changed()).toEqual([]);
  await writeFile(at("a"), "before");
  await rm(at("b"));
  expect(changed()).toEqual([]);
  await writeFile(at("a"), "after, and more");
  await writeFile(at("b"), "");
  expect(changed()).toEqual([at("a"), at("b")]);
  await rm(at("a"));
  expect(changed()).toContain(at("a"));
});

test("a file that is no UTF-8 text is refused, since an edit would lose bytes", async () => {
  const { at } = await home();
  await writeFile(at("a"), Buffer.from([0x7b, 0xff, 0x7d]));
  expect(() => readText(at("a"))).toThrow(/is no UTF-8 text/);
});
