import { execFile } from "node:child_process";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const readme = await readFile(join(root, "README.md"), "utf8");
const greeting = "Hello! You have reached Trunkline's demonstration.";

let up: UpProcess;
const folder = folderOfTests();
beforeAll(async () => {
  up = await startUp();
  // In place of `npm install openai`.
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
});
afterAll(() => up[Symbol.asyncDispose]());

/** The first block of code in a language that has this text, at the address of this test's gateway. */
function snippet(language: string, including: string): string {
  const blocks = readme.matchAll(/^```(\w+)\n([^]*?)^```$/gm);
  const found = blocks.find(([, each, code]) => each === language && code?.includes(including))?.[2];
  if (found === undefined) throw new Error(`README.md has no ${language} with ${including}`);
  const moved = found.replaceAll("http://127.0.0.1:8484/v1", up.endpoint.baseUrl);
  expect(moved).not.toBe(found);
  return moved;
}

test.each(["mjs", "mts"])("the JavaScript snippet streams a chat from a file chat.%s", async (ending) => {
  const file = join(folder, `chat.${ending}`);
  await writeFile(file, snippet("js", "openai"));
  const env = { ...process.env, TRUNKLINE_KEY: up.endpoint.key };
  const { stdout, stderr } = await run(process.execPath, [file], { cwd: folder, env });
  expect(stdout).toContain(greeting);
  expect(stderr).toBe("");
});

test("the example of a route serves what it was set for", async () => {
  await run(process.execPath, ["infra/link-command.js"], { cwd: root });
  const [lines] = /^trunkline routes set .*\n(?:trunkline.*\n)*/m.exec(readme) ?? [];
  const [onPath] = /^export PATH=.*$/m.exec(readme) ?? [];
  const env = { ...process.env, TRUNKLINE_STATE_DIR: up.stateDir };
  const { stdout, stderr } = await run("bash", ["-c", `${onPath}\n${lines}`], { cwd: root, env });
  expect(stdout).toContain(greeting);
  expect(stderr).not.toContain("Warning");
});

test("the curl lines stream a chat", async () => {
  const [, call] = snippet("sh", "curl -N").split(/^export .*\n/m);
  const env = { ...process.env, TRUNKLINE_KEY: up.endpoint.key };
  const { stdout } = await run("bash", ["-c", String(call)], { env });
  expect(stdout).toContain('"Hello');
  expect(stdout.trimEnd().endsWith("data: [DONE]")).toBe(true);
});
