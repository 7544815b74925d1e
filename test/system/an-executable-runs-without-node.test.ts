import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { executableNode, fetchNode, ownTarget } from "../../infra/package/fetch-node.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const buildsWithinMs = 180_000;

/** Why no executable can be made here: its Node is not the one that runs the tests, and comes from npm. */
function whySkipped(): string | undefined {
  try {
    fetchNode(executableNode, ownTarget);
    return undefined;
  } catch {
    return `npm cannot fetch Node ${executableNode} for ${ownTarget}`;
  }
}

const skipped = whySkipped();
if (skipped !== undefined) console.log(`Skipping the executable: ${skipped}.`);

describe.skipIf(skipped !== undefined)("an executable", () => {
  const folder = folderOfTests();
  let node = "";
  beforeAll(async () => {
    await run(process.execPath, [join(root, "infra/package/build.ts")]);
    await run(process.execPath, [join(root, "infra/package/executables.ts"), ownTarget]);
    const archive = join(root, "executables", `trunkline-${ownTarget}.tar.gz`);
    await run("tar", ["-xzf", archive, "-C", folder, "--strip-components=1"]);
    node = join(folder, process.platform === "win32" ? "trunkline.exe" : "trunkline");
  }, buildsWithinMs);

  test("an executable starts, chats, reads a large request in its thread, and serves its pages and the package for machines", async () => {
    await using up = await startUp({}, { node });
    const { endpoint } = up;
    const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=2 nonce=abc" });
    expect([await stream.over, stream.done, stream.text]).toEqual(["closed", true, "abc-0 abc-1 "]);
    const large = `/script tokens=1 nonce=large\n${"x".repeat(limits.partBytes * 3)}`;
    expect(await endpoint.answer({ model: "scripted", says: large })).toBe("large-0 ");
    for (const path of ["/docs", "/docs/page.js", "/docs/swagger-ui-bundle.js", "/openapi.json", "/agent.tgz"]) {
      const page = await fetch(new URL(path, endpoint.baseUrl));
      expect([path, page.status]).toEqual([path, 200]);
      expect((await page.bytes()).length).toBeGreaterThan(100);
    }
    expect(await up.terminate()).toBe(0);
    expect(await up.stderr()).not.toContain("Warning");
  });

  test("an executable says that it serves no GGUF files by itself, and what does", async () => {
    const started = run(node, ["up", "--gguf", "model.gguf"], { cwd: folder });
    await expect(started).rejects.toMatchObject({
      code: exitCodes.unavailable,
      stderr: expect.stringMatching(/^trunkline: This executable cannot load node-llama-cpp: start llama-server .*\n$/),
    });
  });
});
