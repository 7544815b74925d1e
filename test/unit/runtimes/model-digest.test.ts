import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { digestOfFiles } from "../../../services/agent/runtimes/model-digest.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";

let folder = "";
beforeEach(() => void (folder = folderOfTest()));

const bytes = 32 * 1024 * 1024;

test("equal files have equal digests, and a change at an end, in the middle or of the size makes another one", async () => {
  const digestWith = async (name: string, change: (content: Buffer) => Buffer): Promise<string | undefined> => {
    const path = join(folder, name);
    await writeFile(path, change(Buffer.alloc(bytes)));
    return digestOfFiles(path);
  };
  const at = (place: number) => (content: Buffer) => content.fill(1, place, place + 1);
  const same = await digestWith("one", (content) => content);
  expect(same).toMatch(/^[0-9a-f]{32}$/);
  expect(await digestWith("copy", (content) => content)).toBe(same);
  const others = await Promise.all([
    digestWith("first", at(0)),
    digestWith("middle", at(bytes / 2)),
    digestWith("last", at(bytes - 1)),
    digestWith("shorter", (content) => content.subarray(1)),
  ]);
  expect(new Set([same, ...others]).size).toBe(5);
});

test("the digest of a file changes with the file", async () => {
  const path = join(folder, "model.gguf");
  await writeFile(path, "one");
  const before = await digestOfFiles(path);
  await writeFile(path, "another");
  expect(await digestOfFiles(path)).not.toBe(before);
});

test("a model whose part is not here has no digest", async () => {
  const part = (at: number): string => join(folder, `Big-0000${at}-of-00002.gguf`);
  await writeFile(part(1), "one");
  expect(await digestOfFiles(part(1))).toBeUndefined();
  await writeFile(part(2), "two");
  expect(await digestOfFiles(part(1))).toBe(await digestOfFiles(part(2)));
});
