import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { issueKey } from "../harness/trunkline-command.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const page = await readFile(join(root, "docs/operating.md"), "utf8");

/** The blocks of commands of a section. */
function blocksOf(section: string): readonly string[] {
  const text = page.split(/^## /m).find((each) => each.startsWith(`${section}\n`)) ?? "";
  return [...text.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block]) => String(block));
}

test.skipIf(lentOnly("redis"))(
  "the blocks of backup, restore and move bring a key into a folder and into Redis",
  async () => {
    const folder = folderOfTest();
    await using redis = await startRedisServer();
    const { id } = await issueKey({ TRUNKLINE_STATE_DIR: join(folder, "site") });
    const trunkline = `trunkline() { "${process.execPath}" "${join(root, "services/cli/main.ts")}" "$@"; }\n`;
    const paste = async (blocks: readonly string[]): Promise<string> => {
      const lines = blocks.join("").replaceAll("redis://127.0.0.1:6379", redis.url);
      const env = { PATH: process.env["PATH"], HOME: folder, TRUNKLINE_STATE_DIR: join(folder, "site") };
      return (await run("bash", ["-ec", `${trunkline}${lines}`], { cwd: folder, env })).stdout;
    };
    expect(blocksOf("Move to another host")).toHaveLength(2);
    await paste([...blocksOf("Back up"), ...blocksOf("Restore")]);
    expect(await paste(["trunkline keys list\n"])).toContain(id);
    const moved = await paste([
      ...blocksOf("Move to another host"),
      'export TRUNKLINE_KEY_PEPPER_FILE="$PWD/site-secrets/pepper"\n',
      "trunkline keys list\n",
    ]);
    expect(moved).toContain(`TRUNKLINE_KEY_PEPPER_FILE=${join(folder, "site-secrets/pepper")}\n`);
    expect(moved.slice(moved.lastIndexOf("scopes"))).toContain(id);
  },
);
