import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { interruptedCode } from "../../services/cli/terminal/interrupt.ts";
import { readJson } from "../../services/cli/connect/edit-json.ts";
import { findBinary } from "../harness/find-binary.ts";
import { freePort } from "../harness/free-port.ts";
import { serverOfTest } from "../harness/server-of-test.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import type { Settings } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";
import { modelOf } from "../unit/cli/connect/model-of.ts";

let up: UpProcess;
beforeAll(async () => void (up = await startUp()));
afterAll(() => up[Symbol.asyncDispose]());

/** A person at a host of their own, who runs commands for the running site. */
async function person(settings: Settings = {}) {
  const home = folderOfTest();
  const environment = {
    HOME: home,
    TRUNKLINE_STATE_DIR: up.stateDir,
    TRUNKLINE_BASE_URL: new URL(up.endpoint.baseUrl).origin,
    ...settings,
  };
  const run = (args: readonly string[], stdin = Object.assign(new PassThrough(), { isTTY: false })) =>
    trunklineHere(args, environment, { stdin });
  /** The API keys that are valid now, but not the one that `trunkline up` keeps. */
  const liveKeys = async (): Promise<readonly string[]> => {
    const { out } = await run(["keys", "list", "--json"]);
    const keys = JSON.parse(out) as readonly { name: string; state: string }[];
    return keys.flatMap(({ name, state }) => (state === "valid" && !name.startsWith("trunkline up") ? [name] : []));
  };
  await mkdir(join(home, ".claude"));
  return { home, run, liveKeys, file: join(home, ".claude/settings.json") };
}

/** The settings of a person who has only an admin key and the address of the operations port. */
async function atPort() {
  const admin = (await readFile(join(up.stateDir, "admin-key"), "utf8")).trim();
  return { TRUNKLINE_STATE_DIR: "/nowhere", TRUNKLINE_ADMIN_KEY: admin, TRUNKLINE_OPERATIONS_URL: up.operationsUrl };
}

function typed(...lines: readonly string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  for (const line of lines) stdin.write(`${line}\n`);
  return stdin;
}

const before = `{
  // a comment of mine
  "permissions": { "allow": ["Bash(ls:*)"] }, // another one
}
`;

async function tokenIn(file: string): Promise<string> {
  const { ANTHROPIC_AUTH_TOKEN: token } = z
    .object({ env: z.record(z.string(), z.string()) })
    .parse(readJson(await readFile(file, "utf8"))).env;
  return token ?? expect.fail(`there is no key in ${file}`);
}

const statusWith = async (token: string): Promise<number> => (await up.endpoint.withKey(token).models()).status;
const untilRefused = (token: string) =>
  until(async () => (await statusWith(token)) === 401, { what: "the revoked key is refused" });

test("connect writes the live model, its window and a working key, and --undo restores the file and revokes the key", async () => {
  const { run, file, liveKeys } = await person();
  await writeFile(file, before, { mode: 0o644 });
  const { exitCode, out, err } = await run(["connect", "claude", "--name", "laptop", "--ttl", "1d"], typed("y"));
  expect({ exitCode, out }).toEqual({ exitCode: 0, out: expect.stringContaining("claude") });
  const token = await tokenIn(file);
  expect(await readFile(file, "utf8")).toMatch(/^\{\n {2}"env": \{[^]*\n {2}\},\n/);
  expect(await readFile(file, "utf8")).toContain(before.slice(1));
  expect(readJson(await readFile(file, "utf8"))).toMatchObject({
    env: {
      ANTHROPIC_BASE_URL: new URL(up.endpoint.baseUrl).origin,
      ANTHROPIC_MODEL: "scripted",
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: "32768",
    },
  });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(err).toContain('+     "ANTHROPIC_AUTH_TOKEN": "trunkline_…"');
  expect(`${out}${err}`).not.toContain(token);
  expect(await liveKeys()).toEqual(["laptop (connect)"]);
  expect(await statusWith(token)).toBe(200);

  expect(await run(["connect", "claude", "--undo"])).toMatchObject({ exitCode: 0, out: `Restored ${file}\n` });
  expect(await readFile(file, "utf8")).toBe(before);
  expect((await stat(file)).mode & 0o777).toBe(0o644);
  expect(await liveKeys()).toEqual([]);
  expect(await run(["connect", "claude", "--undo"])).toMatchObject({
    exitCode: exitCodes.failed,
    err: "trunkline: Claude Code is not connected: there is nothing to undo.\n",
  });
});

test("connect writes nothing and leaves no key when the person says no, and without a terminal", async () => {
  const { run, file, liveKeys } = await person();
  await writeFile(file, before);
  const no = await run(["connect", "claude"], typed("n"));
  expect(no).toMatchObject({
    exitCode: exitCodes.failed,
    err: expect.stringMatching(/Write\? \[y\/N\] trunkline: Nothing was written\.\n$/),
  });
  const unasked = await run(["connect", "claude"]);
  expect(unasked).toMatchObject({
    exitCode: exitCodes.usage,
    err: expect.stringMatching(/--yes writes without a question\.\n$/),
  });
  expect(await readFile(file, "utf8")).toBe(before);
  expect(await liveKeys()).toEqual([]);
});

test.each<readonly [place: string, settings: () => Promise<Settings>, args: readonly string[]]>([
  ["the key of the site's folder", async () => ({}), []],
  [
    "a key that the person has",
    async () => ({ TRUNKLINE_STATE_DIR: "/nowhere", TRUNKLINE_KEY: up.endpoint.key }),
    ["--key"],
  ],
  ["an operations port", atPort, []],
])("--print shows the files by %s, and issues and changes nothing", async (_, settings, args) => {
  const { run, file } = await person(await settings());
  await writeFile(file, before);
  const trail = async () => (await (await person()).run(["keys", "log", "--json"])).out;
  const trailBefore = await trail();
  expect(await run(["connect", "claude", "--print", ...args])).toEqual({
    exitCode: 0,
    out: expect.stringMatching(
      /settings\.json\n\{[^]*"trunkline_…"[^]*"ANTHROPIC_MODEL": "scripted"[^]*\/\/ a comment of mine/,
    ),
    err: "",
  });
  expect(await readFile(file, "utf8")).toBe(before);
  expect(await trail()).toBe(trailBefore);
});

test("--print asks with the key of the connection that is there, and leaves it as it is", async () => {
  const { run, file } = await person(await atPort());
  await run(["connect", "claude", "--yes"]);
  const connected = await readFile(file, "utf8");
  const { exitCode, out } = await run(["connect", "claude", "--print"]);
  expect([exitCode, out]).toEqual([0, `# ${file}\n${connected.replace(await tokenIn(file), "trunkline_…")}`]);
  expect(await readFile(file, "utf8")).toBe(connected);
  await run(["connect", "claude", "--undo"]);
});

test("--print without any key to ask with says where it looks for one", async () => {
  const folder = folderOfTest();
  const { run } = await person({ TRUNKLINE_STATE_DIR: folder });
  const { exitCode, out, err } = await run(["connect", "claude", "--print"]);
  expect([exitCode, out]).toEqual([exitCodes.config, ""]);
  expect(err).toMatch(/This takes an API key, and there is none: set TRUNKLINE_KEY to one .*TRUNKLINE_STATE_DIR/);
});

test("connect replaces a setting of the person's own only by --force or a yes to its name", async () => {
  const { run, file } = await person();
  const own = '{"env": {"ANTHROPIC_BASE_URL": "https://elsewhere.example"}}';
  await writeFile(file, own);
  const refused = await run(["connect", "claude", "--yes"]);
  expect(refused).toMatchObject({
    exitCode: exitCodes.usage,
    err: expect.stringContaining(
      `replaces what you have: env.ANTHROPIC_BASE_URL in ${file}. Nothing was written: --force`,
    ),
  });
  expect(await readFile(file, "utf8")).toBe(own);
  expect(await run(["connect", "claude"], typed("yes"))).toMatchObject({ exitCode: 0 });
  expect(await tokenIn(file)).toMatch(/^trunkline_/);
  expect(await run(["connect", "claude", "--undo"])).toMatchObject({ exitCode: 0 });
  expect(await readFile(file, "utf8")).toBe(own);
});

test("--undo refuses a file that has changed since and shows what would be lost, unless --force is given", async () => {
  const { run, file } = await person();
  await run(["connect", "claude", "--yes"]);
  const token = await tokenIn(file);
  await writeFile(file, (await readFile(file, "utf8")).replace("ANTHROPIC_MODEL", "ANOTHER_MODEL"));
  const refused = await run(["connect", "claude", "--undo"]);
  expect(refused.exitCode).toBe(exitCodes.failed);
  expect(refused.err).toMatch(
    /"\[key\]",\n- {5}"ANTHROPIC_MODEL".*\n\+ {5}"ANOTHER_MODEL"[^]*An undo loses the lines with \+ .*--undo --force`\.\n$/,
  );
  expect(refused.err).not.toContain(token);
  expect(await statusWith(token)).toBe(200);
  expect(await run(["connect", "claude", "--yes"])).toMatchObject({ exitCode: exitCodes.failed });
  expect(await run(["connect", "claude", "--undo", "--force"])).toMatchObject({
    exitCode: 0,
    out: `Removed ${file}\n`,
  });
  await expect(stat(file)).rejects.toThrow("ENOENT");
  await untilRefused(token);
});

test("a second connect replaces the first one with its key, and --undo goes back to before both", async () => {
  const { run, file, liveKeys } = await person();
  await writeFile(file, before);
  await run(["connect", "claude", "--yes", "--name", "first"]);
  expect(await run(["connect", "claude", "--yes", "--name", "second"])).toMatchObject({ exitCode: 0 });
  expect(await liveKeys()).toEqual(["second (connect)"]);
  await run(["connect", "claude", "--undo"]);
  expect(await readFile(file, "utf8")).toBe(before);
  expect(await liveKeys()).toEqual([]);
});

test.each(["in the site's folder", "at its operations port"])(
  "a second connect for the same client keeps its key %s and extends it, until the key is revoked",
  async (place) => {
    const settings = { ...(await atPort()), TRUNKLINE_STATE_DIR: up.stateDir };
    const { run, file, liveKeys } = await person(place.includes("port") ? settings : {});
    await run(["connect", "claude", "--yes", "--ttl", "1d"]);
    const token = await tokenIn(file);
    const [id = ""] = /(?<=trunkline_)[^_]+/.exec(token) ?? [];
    const expiry = async () =>
      z.object({ expires_at: z.string() }).parse(JSON.parse((await run(["keys", "show", id, "--json"])).out));
    const { expires_at: first } = await expiry();
    await run(["connect", "claude"], typed("n"));
    expect([(await expiry()).expires_at, await statusWith(token)]).toEqual([first, 200]);
    const again = await run(["connect", "claude", "--yes"]);
    expect(again).toMatchObject({
      exitCode: 0,
      err: expect.stringContaining(`The key ${id} stays, and is valid for 90d`),
    });
    expect((await expiry()).expires_at > first).toBe(true);
    expect(await tokenIn(file)).toBe(token);
    expect(await liveKeys()).toHaveLength(1);
    const shorter = await run(["connect", "claude", "--yes", "--ttl", "1h"]);
    expect(shorter).toMatchObject({ exitCode: 0, err: expect.stringContaining("was not extended: ") });
    await run(["keys", "rotate", id, "--grace", "1h"]);
    const { err } = await run(["connect", "claude", "--yes", "--ttl", "91d"]);
    expect(err).toMatch(/was rotated: its secret in these files ends at 20\S+\. --name issues another key/);

    await run(["keys", "revoke", id]);
    await untilRefused(token);
    expect(await run(["connect", "claude", "--yes"])).toMatchObject({ exitCode: 0 });
    expect(await statusWith(await tokenIn(file))).toBe(200);
    await run(["connect", "claude", "--undo"]);
    expect(await liveKeys()).toEqual([]);
  },
);

test("keys list hides the keys that connect has revoked, and counts them; --all and --state show them", async () => {
  const { run } = await person();
  await run(["connect", "claude", "--yes"]);
  await run(["connect", "claude", "--undo"]);
  const idsOf = ({ out }: { out: string }) => out.match(/^\w{12}(?= .*\(connect\) .*revoked)/gm) ?? [];
  const listed = await run(["keys", "list"]);
  expect(idsOf(listed)).toEqual([]);
  const [count] = /(?<=`trunkline connect`, not shown without --all: )\d+/.exec(listed.err) ?? [];
  expect(Number(count)).toBeGreaterThan(0);
  expect(idsOf(await run(["keys", "list", "--all"]))).toHaveLength(Number(count));
  expect(idsOf(await run(["keys", "list", "--state", "revoked"]))).toHaveLength(Number(count));
});

test("connect takes a key that the person has, and never revokes it", async () => {
  const { run, file } = await person({ TRUNKLINE_STATE_DIR: "/nowhere", TRUNKLINE_KEY: up.endpoint.key });
  expect(await run(["connect", "claude", "--yes", "--key"])).toMatchObject({ exitCode: 0 });
  expect(await tokenIn(file)).toBe(up.endpoint.key);
  expect(await run(["connect", "claude", "--undo"])).toMatchObject({ exitCode: 0, err: "" });
  expect(await statusWith(up.endpoint.key)).toBe(200);
});

test("connect issues the key at an operations port with an admin key, and revokes it there", async () => {
  const { run, file } = await person(await atPort());
  expect(await run(["connect", "claude", "--yes"])).toMatchObject({ exitCode: 0 });
  const token = await tokenIn(file);
  expect(await statusWith(token)).toBe(200);
  expect(await run(["connect", "claude", "--undo"])).toMatchObject({
    exitCode: 0,
    err: expect.stringContaining("Revoked the old key"),
  });
  await untilRefused(token);
});

test("connect without a site's folder, a key or an operations port says which of them to name, and makes no folder", async () => {
  const { home } = await person();
  const stateDir = join(home, "missing");
  const elsewhere = await person({ TRUNKLINE_STATE_DIR: stateDir });
  const { exitCode, err } = await elsewhere.run(["connect", "claude", "--yes"]);
  expect(exitCode).toBe(exitCodes.config);
  expect(err).toContain(`${stateDir} is missing. Name a key with --key`);
  await expect(stat(stateDir)).rejects.toThrow("ENOENT");
});

const { failed, config, unavailable } = exitCodes;
const nowhere = `http://127.0.0.1:${await freePort()}`;
const refusals: readonly (readonly [why: string, args: readonly string[], exitCode: number, said: RegExp])[] = [
  ["an unknown model", ["--model", "no"], failed, /no is not on the site\. Those that fit: scripted\.\n$/],
  ["a model without tools", ["--model", "scripted:plain"], failed, /scripted:plain does not fit Claude Code/],
  ["a missing TRUNKLINE_KEY", ["--key"], config, /There is no key in TRUNKLINE_KEY: set it/],
  ["a key that is none", ["--key", "sk-something"], config, /What is in --key is no API key/],
  ["a site that is away", ["--url", nowhere], unavailable, /Nothing listens at .*--url/],
];
test.each(refusals)("connect explains %s in one line and leaves no key", async (_, args, exitCode, said) => {
  const { run, liveKeys } = await person();
  const { err, ...result } = await run(["connect", "claude", "--yes", ...args]);
  expect(result).toEqual({ exitCode, out: "" });
  expect(err).toMatch(said);
  expect(await liveKeys()).toEqual([]);
});

const script = await findBinary("script");
if (script === undefined) console.log("Skipping connect on a terminal: there is no `script` on the PATH.");

test.skipIf(script === undefined).each([
  ["n\r", exitCodes.failed, /\[y\/N\] n\r\n.*Nothing was written\./],
  ["\u0003", interruptedCode, /Interrupted: nothing was written\./],
])("connect on a terminal ends after %j, without a key left", async (keys, exitCode, said) => {
  const { home, liveKeys } = await person();
  const main = join(import.meta.dirname, "../../services/cli/main.ts");
  const command = `exec '${process.execPath}' '${main}' connect claude`;
  const env = { ...process.env, HOME: home, TRUNKLINE_STATE_DIR: up.stateDir };
  const child = spawn(script ?? "script", ["-qefc", command, "/dev/null"], { env });
  const ended = once(child, "exit");
  let shown = "";
  child.stdout.on("data", (piece) => (shown += String(piece)));
  await until(() => shown.includes("[y/N]"), { what: "the question on the terminal" });
  child.stdin.write(keys);
  expect(await ended).toEqual([exitCode, null]);
  expect(shown).toMatch(said);
  expect(await liveKeys()).toEqual([]);
});

test("ids of models that a shell, a terminal or a program takes for commands are left out, and named on one line", async () => {
  const ids = ["good model:1", "x'; touch it #", "{file:~/.ssh/id_rsa}", "$HOME", "a\nOPENAI_API_KEY=b", "\u001b[2J"];
  const data = ids.map((id) => modelOf(id));
  const site = await serverOfTest((_, response) => void response.end(JSON.stringify({ object: "list", data })));
  const { run } = await person({ TRUNKLINE_BASE_URL: site });
  for (const client of ["opencode", "qwen", "open-webui"]) {
    const { exitCode, out, err } = await run(["connect", client, "--print", "--key", up.endpoint.key]);
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: expect.stringMatching(/^Left out.*file:.*HOME.*\n$/) });
    expect(out).toContain("good model:1");
    for (const each of ids.slice(1)) expect(out).not.toContain(each.slice(0, 5));
  }
  const named = await run(["connect", "opencode", "--print", "--key", up.endpoint.key, "--model", "$HOME"]);
  expect([named.exitCode, named.err]).toEqual([exitCodes.failed, expect.stringContaining("does not fit")]);
});
