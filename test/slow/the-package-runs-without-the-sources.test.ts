import { execFile, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import packageJson from "../../package.json" with { type: "json" };
import { freePort } from "../harness/free-port.ts";
import { anywhere, demonstration, startUp } from "../harness/start-trunkline.ts";
import { launchTrunkline, trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const { version } = packageJson;

const twenty = Array.from({ length: 20 }, (_, at) => `s-${at} `).join("");

/** PACKAGE_NODES adds Nodes by their paths: `npm run test:package` runs this file on the oldest of each version. */
const nodes = [process.execPath, ...(process.env["PACKAGE_NODES"] ?? "").split(delimiter).filter(Boolean)];

let folder = "";
/** Returns the environment of an npm with an empty cache, on this Node. */
const npmEnvironment = (node = process.execPath) => ({
  ...process.env,
  PATH: `${dirname(node)}${delimiter}${process.env["PATH"]}`,
  npm_config_cache: join(folder, "cache"),
  npm_config_update_notifier: "false",
});
/** Runs npm in an empty folder and without the network. */
const npm = (command: "npm" | "npx", args: readonly string[], node = process.execPath) =>
  run(command, args, { cwd: folder, env: npmEnvironment(node), shell: process.platform === "win32" });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "trunkline-package-"));
  await run("npm", ["pack", `--pack-destination=${folder}`], { cwd: root, shell: process.platform === "win32" });
  await npm("npm", ["install", "--offline", "--prefix=.", `./trunkline-${version}.tgz`]);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const installed = (...path: readonly string[]): string => join(folder, "node_modules", "trunkline", ...path);

describe.each(nodes)("the package on %s", (node) => {
  test("starts, chats, reads a large request in its thread and serves its pages", async () => {
    await using up = await startUp({}, { node, main: installed("dist", "main.js") });
    const { endpoint } = up;
    expect(await endpoint.answer({ model: "scripted", says: "/script tokens=2 nonce=abc" })).toBe("abc-0 abc-1 ");
    const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=20 nonce=s" });
    expect([await stream.over, stream.done, stream.text]).toEqual(["closed", true, twenty]);
    const large = `/script tokens=1 nonce=large\n${"x".repeat(limits.partBytes * 3)}`;
    expect(await endpoint.answer({ model: "scripted", says: large })).toBe("large-0 ");
    for (const path of ["/docs", "/docs/page.js", "/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js"]) {
      const page = await fetch(new URL(path, endpoint.baseUrl));
      expect([path, page.status]).toEqual([path, 200]);
      expect((await page.bytes()).length).toBeGreaterThan(100);
    }
    for (const path of ["/console", "/console/console.js", "/console/console.css"]) {
      const page = await fetch(new URL(path, up.operationsUrl));
      expect([path, page.status]).toEqual([path, 200]);
      expect((await page.bytes()).length).toBeGreaterThan(100);
    }
    const settings = { TRUNKLINE_STATE_DIR: up.stateDir, HOME: folder };
    const connect = ["connect", "opencode", "--print"];
    await using connecting = await launchTrunkline(connect, settings, { node, main: installed("dist", "main.js") });
    expect([await connecting.exit(), await connecting.stderr()]).toEqual([0, ""]);
    expect(await connecting.stdout()).toContain(endpoint.baseUrl);
    expect(await up.terminate()).toBe(0);
    expect(await up.stderr()).not.toContain("Warning");
  });

  test("is what its site serves to machines, and npx runs that", async () => {
    await using up = await startUp({}, { node, main: installed("dist", "main.js") });
    const url = new URL("/agent.tgz", up.endpoint.baseUrl).href;
    const served = await fetch(url);
    expect(served.headers.get("content-type")).toBe("application/gzip");
    const packed = Buffer.from(await served.arrayBuffer());
    expect(packed.equals(await readFile(installed("dist", "agent.tgz")))).toBe(true);
    const etag = served.headers.get("etag") ?? "";
    expect((await fetch(url, { headers: { "if-none-match": etag } })).status).toBe(304);
    expect((await fetch(url, { method: "HEAD" })).headers.get("content-length")).toBe(String(packed.length));
    const fetched = await fetch(`${url}?${version}`);
    expect(Buffer.from(await fetched.arrayBuffer()).equals(packed)).toBe(true);
    const { stdout } = await npm("npx", ["-y", `${url}?${version}`, "--version"], node);
    expect(stdout.trim()).toBe(version);
  });
});

test.skipIf(process.platform !== "linux")(
  "a machine joins by the printed command, and its secret is in no process's arguments or environment",
  async () => {
    const port = await freePort();
    const settings = { TRUNKLINE_PORT: String(port), TRUNKLINE_PUBLIC_URL: `http://127.0.0.1:${port}` };
    await using up = await startUp(settings, { node: process.execPath, main: installed("dist", "main.js") });
    const site = { TRUNKLINE_STATE_DIR: up.stateDir, TRUNKLINE_OPERATIONS_URL: up.operationsUrl };
    const made = JSON.parse((await trunkline(["machines", "pair", "attic", "--json"], site)).stdout);
    const secret = String(made.join).split(".").at(-1) ?? "";
    const env = { ...anywhere, ...demonstration, TRUNKLINE_STATE_DIR: join(folder, "attic") };
    const shell = spawn("sh", [], { cwd: folder, env: { ...npmEnvironment(), ...env }, detached: true });
    onTestFinished(() => void process.kill(-(shell.pid ?? 0)));
    shell.stdin.end(made.command);
    let said = "";
    shell.stderr.on("data", (text) => (said += text));
    const seen: string[] = [];
    const look = async (): Promise<boolean> => {
      seen.push(...(await processesThatShow(secret)));
      return said.includes("agent ready");
    };
    await until(look, { what: "the machine to be ready", timeoutMs: 30_000, intervalMs: 1 });
    expect(seen).toEqual([]);
    expect(said).toContain("This machine is now 'attic'");
  },
);

/** Returns the arguments of each process that has the text in them or in its environment. */
async function processesThatShow(text: string): Promise<string[]> {
  const found = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const read = (id: string, file: string): Promise<string> => readFile(`/proc/${id}/${file}`, "utf8").catch(() => "");
  const shown = await Promise.all(found.map(async (id) => [await read(id, "cmdline"), await read(id, "environ")]));
  return shown.flatMap((each) => (each.some((part) => part.includes(text)) ? each.slice(0, 1) : []));
}

test("the package needs no other, holds no source and names the licence of each package in it", async () => {
  const own = JSON.parse(await readFile(installed("package.json"), "utf8")) as typeof packageJson;
  expect(own).not.toHaveProperty("dependencies");
  // npm warns of scripts that an installation would run.
  for (const script of ["preinstall", "install", "postinstall", "prepare"])
    expect(own.scripts).not.toHaveProperty(script);
  const names = tarNames(gunzipSync(await readFile(join(folder, `trunkline-${version}.tgz`))));
  expect(names.filter((name) => !/^package\/(?:package\.json|README\.md|LICENSE|dist\/.*)$/.test(name))).toEqual([]);
  expect(names.filter((name) => name.endsWith(".ts"))).toEqual([]);
  const notices = await readFile(installed("dist", "THIRD-PARTY.txt"), "utf8");
  const named = [...notices.matchAll(/^(\S+) \d+\.\d+\.\d+ \([\w.-]+\)$/gm)].map(([, name]) => name);
  const expected = ["fastify", "undici", "zod", "@nats-io/nats-core", "ioredis", "swagger-ui-dist"];
  expect(named).toEqual(expect.arrayContaining(expected));
});

test("an older Node says which one is needed, in one line", async () => {
  const older = "data:text/javascript,Object.defineProperty(process.versions,'node',{value:'22.18.0'})";
  const started = run(process.execPath, ["--import", older, installed("dist", "main.js"), "--version"]);
  await expect(started).rejects.toMatchObject({
    code: 69,
    stdout: "",
    stderr: expect.stringMatching(/^trunkline: needs Node 22\.19 or newer; this is .*\n$/),
  });
});

test("a checkout makes the package that it serves, once", async () => {
  await using up = await startUp();
  const url = new URL("/agent.tgz", up.endpoint.baseUrl);
  const [first, second] = await Promise.all([fetch(url), fetch(url)]);
  expect([first.status, second.status]).toEqual([200, 200]);
  const names = tarNames(gunzipSync(await first.bytes()));
  expect(names).toContain("package/dist/trunkline.js");
  expect(names).not.toContain("package/dist/agent.tgz");
});

/** Returns the names of a tar file's entries. */
function tarNames(tar: Buffer): string[] {
  const names: string[] = [];
  for (let at = 0; at < tar.length && tar[at] !== 0;) {
    const text = (from: number, length: number) =>
      tar.toString("utf8", at + from, at + from + length).split("\0")[0] ?? "";
    names.push(text(0, 100));
    at += 512 + Math.ceil(Number.parseInt(text(124, 12), 8) / 512) * 512;
  }
  return names;
}
