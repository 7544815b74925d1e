import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const pages = ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)];
const greeting = "Hello! You have reached Trunkline's demonstration.";

/** The blocks of code of all pages in one language. `title` is the page with the first line of the block. */
const blocksIn = (wanted: string) =>
  pages.flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(/^```(\w+)\n([^]*?)^```$/gm)].flatMap(
      ([, language, code = ""]) =>
        language === wanted ? [{ page, code, title: `${page}: ${code.split(/ {2,}#|\n/, 1)[0]}` }] : [],
    ),
  );
const commands = blocksIn("sh");

/** Blocks that do not run here, by words of their first line or by their page, and why. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/: git clone/, "every run of CI is a clone"],
  [/: npm ci && npm start/, "`startUp` is this command"],
  [/: npm test/, "this test is part of it"],
  [/: docker build/, "system/infra-image-is-built-and-runs builds the image where buildah is"],
  [
    /: npm pack/,
    "slow/the-package-runs-without-the-sources packs it, and test:package runs it on other versions of Node",
  ],
  [/: npm install --no-save node-llama-cpp/, "test/engine runs GGUF files with the engine that it installs"],
  [/: npm start -- --public|: echo "https|: curl --insecure|: scp/, "system/a-machine-joins-in-one-line-and-works"],
  [/: trunkline status --watch/, "it goes on until Ctrl-C; unit/cli and system/operators-see-their-fleet show it"],
  [/: npx -y https:/, "browser/a-member-logs-in-on-a-computer; the host is a placeholder"],
  [/: trunkline keys rotate|: curl -H "Authorization/, "it names a key; system/the-story-of-a-key does both"],
  [/: trunkline agent install/, "unit/cli/service; it makes a service of the host"],
  [/models-in-memory/, "system tests of pulls and keeps; it needs a model server that pulls"],
  [/several-gateways.md: infra\//, "system/several-gateways-run-on-one-machine runs the script"],
  [/several-gateways/, "integration/infra-*; the hosts are placeholders"],
  [
    /signals/,
    "integration/a-request-is-traced-to-its-engine, system/alert-targets-are-told-what-is-wrong, integration/captured-content-is-read-by-admins-alone; the hosts and ids are placeholders",
  ],
  [/operating/, "system/backups-work-as-the-operating-page-says"],
];
const runHere = commands.filter(({ title }) => !elsewhere.some(([words]) => words.test(title)));

let up: UpProcess;
const folder = folderOfTests();
beforeAll(async () => {
  up = await startUp();
  // In place of `npm install openai`.
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  await run(process.execPath, ["infra/link-command.js"], { cwd: root });
});
afterAll(() => up[Symbol.asyncDispose]());

const atThisSite = (code: string): string => code.replaceAll("http://127.0.0.1:8484/v1", up.endpoint.baseUrl);

/** Pastes commands into a shell in the project's folder, with a home of its own and the site of this test. */
async function paste(code: string): Promise<{ stdout: string; stderr: string }> {
  const [onPath] = /^export PATH=.*$/m.exec(readFileSync(join(root, "README.md"), "utf8")) ?? [];
  const { baseUrl, key } = up.endpoint;
  const site = { TRUNKLINE_STATE_DIR: up.stateDir, TRUNKLINE_BASE_URL: baseUrl, TRUNKLINE_KEY: key, HOME: folder };
  const lines = atThisSite(code).replaceAll("$(cat .trunkline/key)", key);
  return run("bash", ["-ec", `${onPath}\n${lines}`], { cwd: root, env: { ...process.env, ...site } });
}

test.each(runHere)("the commands of $title run as pasted", async ({ code }) => {
  // A doctor may have findings on this host, and `connect` asks its question on a terminal only.
  const pasted = code
    .replace(/^trunkline doctor.*\n/m, "trunkline doctor || [ $? = 1 ]\n")
    .replace(/^trunkline connect \w+/m, "$& --yes");
  const { stdout } = await paste(pasted);
  expect(stdout).not.toBe("");
  if (/chat \S+ 'Hello!'/.test(code)) expect(stdout).toContain(greeting);
  if (code.includes("curl -N")) expect(stdout.trimEnd().endsWith("data: [DONE]")).toBe(true);
});

test("each reason for not running a block of commands has a block", () => {
  const idle = elsewhere.filter(([words]) => !commands.some(({ title }) => words.test(title)));
  expect(idle).toEqual([]);
  expect(runHere.length).toBeGreaterThan(6);
});

test.each(["mjs", "mts"])("the JavaScript of docs/clients.md streams a chat from a file chat.%s", async (ending) => {
  const file = join(folder, `chat.${ending}`);
  const [found] = blocksIn("js").filter(({ page, code }) => page === "docs/clients.md" && code.includes('"openai"'));
  await writeFile(file, atThisSite(found?.code ?? ""));
  const env = { ...process.env, TRUNKLINE_KEY: up.endpoint.key };
  const { stdout, stderr } = await run(process.execPath, [file], { cwd: folder, env });
  expect(stdout).toContain(greeting);
  expect(stderr).toBe("");
});
