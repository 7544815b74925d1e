import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../harness/free-port.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { natsUrl } from "../harness/nats-server.ts";
import { type Direction, TcpProxy } from "../harness/tcp-proxy.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { testPepper, trunkline, type Settings } from "../harness/trunkline-command.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

const free = { TRUNKLINE_PORT: "0", TRUNKLINE_OPERATIONS_PORT: "0", TRUNKLINE_RUNTIME: "scripted" };
const taken = createServer();
let takenPort: string;
let nowhere: string;
const folder = folderOfTests();
let nats: SomeServer;
let redis: SomeServer;

beforeAll(async () => {
  let port: number;
  [port, nats, redis] = await Promise.all([freePort(), natsUrl(), redisUrl()]);
  nowhere = `127.0.0.1:${port}`;
  taken.listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = taken.address();
  takenPort = String(typeof address === "object" ? address?.port : undefined);
  await writeFile(join(folder, "file"), "this is no folder");
});
afterAll(async () => {
  taken.close();
  await Promise.all([nats.stop(), redis.stop()]);
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

test.each<[what: string, settings: () => Settings, line: () => RegExp]>([
  [
    "a port in use",
    () => ({ TRUNKLINE_PORT: takenPort }),
    () => new RegExp(`^trunkline: Port ${takenPort} .*in use.* TRUNKLINE_PORT `),
  ],
  [
    "a port of operations in use",
    () => ({ TRUNKLINE_OPERATIONS_PORT: takenPort }),
    () => new RegExp(`^trunkline: Port ${takenPort} .*in use.* TRUNKLINE_OPERATIONS_PORT `),
  ],
  [
    "a state folder that cannot be",
    () => ({ TRUNKLINE_STATE_DIR: join(folder, "file", "state") }),
    () => new RegExp(`${join(folder, "file", "state")}.*set TRUNKLINE_STATE_DIR`),
  ],
  ["a host that is not here", () => ({ TRUNKLINE_HOST: "192.0.2.1" }), () => /TRUNKLINE_HOST/],
  [
    "settings that are wrong, all of them at once",
    () => ({ TRUNKLINE_PORT: "http", TRUNKLINE_LOG_LEVEL: "loud" }),
    () => /^(?=.*TRUNKLINE_PORT must be).*TRUNKLINE_LOG_LEVEL must be/,
  ],
])("an up tells of %s in the one line that it writes", async (_what, settings, line) => {
  const { stderr } = await trunkline(["up"], { ...free, ...settings() });
  expect(stderr).toMatch(/^[^\n]*\n$/);
  expect(stderr).toMatch(line());
});

/** How a line to NATS is bad while a process starts: from the beginning, or from the first PONG, which ends the handshake. */
const lines: readonly { readonly what: string; readonly spoil?: (proxy: TcpProxy) => void }[] = [
  { what: "is refused", spoil: (proxy) => proxy.refuse(true) },
  { what: "is silent", spoil: (proxy) => proxy.hold("back") },
  { what: "falls silent after the handshake" },
];

test.each(lines)(
  "an agent goes on trying on a line to NATS that $what, and is there once it is mended, or is stopped before",
  async ({ spoil }) => {
    let isSpoilt = spoil === undefined;
    const watch = (direction: Direction) => (chunk: Buffer) =>
      isSpoilt && direction === "back" && chunk.includes("PONG") ? chunk.length : undefined;
    await using proxy = await TcpProxy.before(nats.url, watch);
    spoil?.(proxy);
    const url = `nats://127.0.0.1:${proxy.port}`;
    const start = (machine: string): Promise<TrunklineProcess> =>
      TrunklineProcess.start({
        args: ["agent"],
        settings: { ...free, TRUNKLINE_NATS_URL: url, TRUNKLINE_MACHINE: machine },
      });
    await using agent = await start("attic");
    await using stopped = await start("cellar");
    const toldBy = (process: TrunklineProcess) =>
      until(
        async () => (await process.logLines()).find(({ msg }) => msg.includes(`NATS at ${url} cannot be reached`)),
        {
          what: "the agent to tell it",
          timeoutMs: 20_000,
        },
      );
    expect((await toldBy(agent)).msg).toMatch(
      /: start it there, or set TRUNKLINE_NATS_URL to where it is\. The agent tries again\.$/,
    );
    await toldBy(stopped);
    expect(await stopped.terminate()).toBe(0);
    isSpoilt = false;
    proxy.refuse(false);
    proxy.release();
    await agent.logged("agent ready");
    expect(await agent.terminate()).toBe(0);
  },
);

const pepper = { TRUNKLINE_KEY_PEPPER: testPepper };

test.each<[what: string, commands: readonly string[], settings: () => Settings, line: () => RegExp]>([
  [
    "a NATS that does not answer",
    ["up", "gateway"],
    () => ({ TRUNKLINE_NATS_URL: `nats://${nowhere}` }),
    () => new RegExp(`^trunkline: NATS at .*${nowhere} .*TRUNKLINE_NATS_URL`),
  ],
  [
    "a Redis that does not answer",
    ["up", "gateway", "keys list"],
    () => ({ TRUNKLINE_NATS_URL: nats.url, TRUNKLINE_REDIS_URL: `redis://${nowhere}`, ...pepper }),
    () => new RegExp(`^trunkline: Redis at ${nowhere} .*TRUNKLINE_REDIS_URL`),
  ],
  [
    "a Redis without a pepper",
    ["up", "gateway", "keys list"],
    () => ({ TRUNKLINE_NATS_URL: nats.url, TRUNKLINE_REDIS_URL: redis.url }),
    () => /^trunkline: .*set TRUNKLINE_KEY_PEPPER/,
  ],
  ["no NATS at all", ["gateway"], () => ({}), () => /^trunkline: .*needs TRUNKLINE_NATS_URL/],
  [
    "neither a pairing nor NATS, with both ways and where the pairing was looked for",
    ["agent"],
    () => ({ TRUNKLINE_MACHINE: "attic" }),
    () => /not paired \(there is no \/.*pairing\.json\).*machines pair attic.*TRUNKLINE_NATS_URL/,
  ],
])("a process tells in one line of %s", async (_what, commands, settings, line) => {
  for (const command of commands) expect(await refusal(command.split(" "), settings())).toMatch(line());
});
