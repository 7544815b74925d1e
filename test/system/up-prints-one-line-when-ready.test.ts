import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startUp } from "../harness/start-trunkline.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

test("with --json the line of a ready up is all that standard output ever holds", async () => {
  await using up = await startUp();
  const { endpoint, runtime } = up;
  expect(runtime).toBe("scripted");
  expect(await endpoint.answer({ model: "scripted", says: "/script tokens=2 nonce=abc" })).toBe("abc-0 abc-1 ");
  expect((await endpoint.withKey("nonsense").models()).status).toBe(401);
  expect(await up.terminate()).toBe(0);
  const line = `${JSON.stringify({ base_url: endpoint.baseUrl, api_key: endpoint.key, runtime })}\n`;
  expect(await up.stdout()).toBe(line);
});

test("the first start makes pepper and key for their owner alone, and later starts keep them", async () => {
  const folder = folderOfTest();
  const stateDir = join(folder, "below", "state");
  const keys: string[] = [];
  for (let start = 0; start < 3; start += 1) {
    await using up = await startUp({ TRUNKLINE_STATE_DIR: stateDir });
    expect((await up.endpoint.models()).status).toBe(200);
    keys.push(up.endpoint.key);
    expect(await up.terminate()).toBe(0);
  }
  expect(new Set(keys).size).toBe(1);

  const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);
  expect(await modeOf(stateDir)).toBe("700");
  const files = await readdir(stateDir);
  expect(files).toEqual(expect.arrayContaining(["key", "pepper"]));
  for (const file of files) expect([file, await modeOf(join(stateDir, file))]).toEqual([file, "600"]);
});
