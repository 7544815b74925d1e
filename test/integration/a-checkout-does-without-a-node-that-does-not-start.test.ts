import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, readlink, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { folderOfTest } from "../harness/temporary-folder.ts";

const loaderError = "node: error while loading shared libraries: libatomic.so.1: cannot open shared object file";

/** Runs the script `dependencies` as npm does at the end of `npm ci`, in a checkout whose Node from npm does not start, under a Node of this version. */
async function prepareUnder(version: string) {
  const folder = folderOfTest();
  const bin = join(folder, "node_modules", ".bin");
  await mkdir(bin, { recursive: true });
  await mkdir(join(folder, "infra"));
  for (const name of ["host-node.js", "link-command.js"]) {
    await copyFile(join(import.meta.dirname, "../../infra", name), join(folder, "infra", name));
  }
  const link = join(bin, "node");
  await writeFile(link, `#!/bin/sh\necho '${loaderError}' >&2\nexit 127\n`);
  await chmod(link, 0o755);
  const posing = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'${version}'})`;
  const env = {
    PATH: `${bin}:${process.env["PATH"]}`,
    NODE_OPTIONS: `--import "${posing}"`,
    npm_node_execpath: process.execPath,
  };
  const { dependencies: script } = packageJson.scripts;
  const run = promisify(execFile)("sh", ["-c", script], { cwd: folder, env });
  const told = await run.catch((error: { code: number; stderr: string }) => error);
  return {
    folder,
    code: "code" in told ? told.code : 0,
    stderr: told.stderr,
    node: await readlink(link).catch(() => undefined),
  };
}

test("a host's Node that can run the sources takes the place of the one from npm", async () => {
  const { code, stderr, node } = await prepareUnder("24.0.0");
  expect([code, node]).toEqual([0, process.execPath]);
  expect(stderr).toContain("is used instead");
});

test("an older Node names the package that is missing", async () => {
  const { code, stderr, node } = await prepareUnder("22.19.0");
  expect([code, node]).toEqual([1, undefined]);
  expect(stderr).toContain("apt-get install libatomic1");
});

test("npm ci puts the command trunkline beside those of packages, and it runs from any folder and by any link", async () => {
  const { folder } = await prepareUnder("24.0.0");
  await mkdir(join(folder, "services", "cli"), { recursive: true });
  await writeFile(join(folder, "services", "cli", "main.ts"), "console.log(...process.argv.slice(2));");
  const linked = join(folder, "linked");
  await symlink(join(folder, "node_modules", ".bin", "trunkline"), linked);
  const { stdout } = await promisify(execFile)(linked, ["models", "two words"], { cwd: tmpdir() });
  expect(stdout).toBe("models two words\n");
});
