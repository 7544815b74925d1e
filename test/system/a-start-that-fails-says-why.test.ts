import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../harness/free-port.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { natsUrl } from "../harness/nats-server.ts";
import { type Direction, TcpProxy } from "../harness/tcp-proxy.ts";
import { testPepper, trunkline, type Settings } from "../harness/trunkline-command.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

const free = { TRUNKLINE_PORT: "0", TRUNKLINE_OPERATIONS_PORT: "0", TRUNKLINE_RUNTIME: "scripted" };
const taken = createServer();
let takenPort: string;
let nobodyPort: number;
let folder: string;
let nats: SomeServer;
let redis: SomeServer;

beforeAll(async () => {
  [folder, nobodyPort, nats, redis] = await Promise.all([
    mkdtemp(join(tmpdir(), "trunkline-failing-")),
    freePort(),
    natsUrl(),
    redisUrl(),
  ]);
  taken.listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = taken.address();
  takenPort = String(typeof address === "object" ? address?.port : undefined);
  await writeFile(join(folder, "file"), "this is no folder");
});
afterAll(async () => {
  taken.close();
  await Promise.all([nats.stop(), redis.stop(), rm(folder, { recursive: true })]);
});

/** The one line that a person is left with; the log's own lines are JSON. */
async function refusal(args: readonly string[], settings: Settings): Promise<string> {
  const { exitCode, stdout, stderr } = await trunkline(args, { ...free, ...settings });
  expect(stdout).toBe("");
  expect(exitCode).toEqual(expect.any(Number));
  expect(exitCode).not.toBe(0);
  const lines = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
  expect(lines).toHaveLength(1);
  return lines[0] ?? "";
}

/** Nothing but the one line is on a terminal where somebody runs everything. */
async function refusalOfUp(settings: Settings): Promise<string> {
  const { stderr } = await trunkline(["up"], { ...free, ...settings });
  const line = await refusal(["up"], settings);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  return line;
}

test("a port in use", async () => {
  const line = await refusalOfUp({ TRUNKLINE_PORT: takenPort });
  expect(line).toMatch(new RegExp(`^trunkline: Port ${takenPort} .*in use.* TRUNKLINE_PORT `));
});

test("a port of operations in use", async () => {
  const line = await refusalOfUp({ TRUNKLINE_OPERATIONS_PORT: takenPort });
  expect(line).toMatch(new RegExp(`^trunkline: Port ${takenPort} .*in use.* TRUNKLINE_OPERATIONS_PORT `));
});

test("a state folder that cannot be", async () => {
  const stateDir = join(folder, "file", "state");
  const line = await refusalOfUp({ TRUNKLINE_STATE_DIR: stateDir });
  expect(line).toContain(stateDir);
  expect(line).toContain("set TRUNKLINE_STATE_DIR");
});

test("a host that is not here, settings that are wrong, all of them at once", async () => {
  expect(await refusalOfUp({ TRUNKLINE_HOST: "192.0.2.1" })).toContain("TRUNKLINE_HOST");
  const line = await refusalOfUp({ TRUNKLINE_PORT: "http", TRUNKLINE_LOG_LEVEL: "loud" });
  expect(line).toContain("TRUNKLINE_PORT must be");
  expect(line).toContain("TRUNKLINE_LOG_LEVEL must be");
});

/** Holds what NATS says from its first PONG on, which ends the handshake. */
const silentAfterHandshake = () => (chunk: Buffer) => (chunk.includes("PONG") ? chunk.length : undefined);

/** How a line to NATS is bad while a process starts. */
const lines: readonly {
  readonly what: string;
  readonly inspect?: () => (chunk: Buffer) => number | undefined;
  readonly spoil?: (proxy: TcpProxy) => void;
}[] = [
  { what: "is refused", spoil: (proxy) => proxy.refuse(true) },
  { what: "is silent", spoil: (proxy) => proxy.hold("back") },
  { what: "falls silent after the handshake", inspect: silentAfterHandshake },
];

test.each(lines)(
  "an agent goes on trying on a line to NATS that $what, and is there once it is mended",
  async ({ inspect, spoil }) => {
    let isSpoilt = true;
    const watch =
      inspect &&
      ((direction: Direction) => {
        const hold = inspect();
        return (chunk: Buffer) => (isSpoilt && direction === "back" ? hold(chunk) : undefined);
      });
    await using proxy = await TcpProxy.before(nats.url, watch);
    spoil?.(proxy);
    const url = `nats://127.0.0.1:${proxy.port}`;
    await using agent = await TrunklineProcess.start({
      args: ["agent"],
      settings: { ...free, TRUNKLINE_NATS_URL: url, TRUNKLINE_MACHINE: "attic" },
    });
    const told = async () =>
      (await agent.logLines()).filter(({ msg }) => msg.includes(`NATS at ${url} cannot be reached`));
    await until(async () => (await told()).length > 0, { what: "the agent to tell it", timeoutMs: 20_000 });
    expect((await told())[0]?.msg).toMatch(
      /: start it there, or set TRUNKLINE_NATS_URL to where it is\. The agent tries again\.$/,
    );
    isSpoilt = false;
    proxy.refuse(false);
    proxy.release();
    await agent.logged("agent ready");
    expect(await agent.terminate()).toBe(0);
  },
);

test("an agent goes on trying until it is stopped", async () => {
  await using proxy = await TcpProxy.before(nats.url);
  proxy.hold("back");
  await using agent = await TrunklineProcess.start({
    args: ["agent"],
    settings: { ...free, TRUNKLINE_NATS_URL: `nats://127.0.0.1:${proxy.port}`, TRUNKLINE_MACHINE: "attic" },
  });
  await until(async () => (await agent.logLines()).some(({ msg }) => msg.includes("cannot be reached")), {
    what: "the agent to tell that NATS does not answer",
    timeoutMs: 10_000,
  });
  expect(await agent.terminate()).toBe(0);
});

describe("every process says in one line what to do about", () => {
  const somewhere = () => ({ nowhere: `127.0.0.1:${nobodyPort}`, nats: nats.url, redis: redis.url });

  test.each(["up", "gateway"])("a NATS that does not answer %s", async (command) => {
    const { nowhere } = somewhere();
    const line = await refusal([command], { TRUNKLINE_NATS_URL: `nats://${nowhere}` });
    expect(line).toMatch(new RegExp(`^trunkline: NATS at .*${nowhere} .*TRUNKLINE_NATS_URL`));
  });

  test.each(["up", "gateway", "keys list"])("a Redis that does not answer %s", async (command) => {
    const { nowhere, nats: url } = somewhere();
    const stores = { TRUNKLINE_REDIS_URL: `redis://${nowhere}`, TRUNKLINE_KEY_PEPPER: testPepper };
    const line = await refusal(command.split(" "), { TRUNKLINE_NATS_URL: url, ...stores });
    expect(line).toMatch(new RegExp(`^trunkline: Redis at ${nowhere} .*TRUNKLINE_REDIS_URL`));
  });

  test.each(["up", "gateway", "keys list"])("a Redis without a pepper, for %s", async (command) => {
    const { nats: url, redis: redisHere } = somewhere();
    const line = await refusal(command.split(" "), { TRUNKLINE_NATS_URL: url, TRUNKLINE_REDIS_URL: redisHere });
    expect(line).toMatch(/^trunkline: .*set TRUNKLINE_KEY_PEPPER/);
  });

  test("no NATS at all, for gateway", async () => {
    expect(await refusal(["gateway"], {})).toMatch(/^trunkline: .*needs TRUNKLINE_NATS_URL/);
  });

  test("neither a pairing nor NATS, for agent: both ways are named, and where the pairing was looked for", async () => {
    const line = await refusal(["agent"], { TRUNKLINE_MACHINE: "attic" });
    expect(line).toMatch(/not paired \(there is no \/.*pairing\.json\).*machines pair attic.*TRUNKLINE_NATS_URL/);
  });
});
