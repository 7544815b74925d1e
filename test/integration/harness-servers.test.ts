import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { redisUrl, startRedisServer } from "../harness/redis-server.ts";
import { natsUrl, startNatsServer } from "../harness/nats-server.ts";
import type { OwnServer } from "../harness/own-server.ts";

interface Asked {
  readonly url: string;
  readonly windowMs?: number;
}

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

const answerWindowMs = 10_000;
const silenceWindowMs = 300;

/** What a fresh connection to the server is told for its question; undefined when nobody answers within the window. */
function ask(server: Asked, question: string): Promise<string | undefined> {
  const { hostname, port } = new URL(server.url);
  const timeout = server.windowMs ?? answerWindowMs;
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), timeout }, () => socket.write(question));
    sockets.push(socket);
    let answer = "";
    socket.setEncoding("utf8");
    socket.on("error", () => resolve(undefined));
    socket.on("close", () => resolve(undefined));
    socket.on("timeout", () => resolve(undefined));
    socket.on("data", (chunk: string) => {
      answer += chunk;
      const line = /^(PONG|\+PONG|\+OK|\$\d+\r\n.*|\$-1|-.*)\r$/m.exec(answer)?.[1];
      if (line !== undefined) resolve(line);
    });
  });
}

const pingNats = (server: Asked): Promise<string | undefined> => ask(server, 'CONNECT {"verbose":false}\r\nPING\r\n');
const pingRedis = (server: Asked): Promise<string | undefined> => ask(server, "PING\r\n");

const kinds = [
  { kind: "nats", start: () => startNatsServer(), ping: pingNats, pong: "PONG" },
  { kind: "redis", start: () => startRedisServer(), ping: pingRedis, pong: "+PONG" },
] as const;

describe.each(kinds)("a $kind server of one's own", ({ kind, start, ping, pong }) => {
  const ownTest = test.skipIf(lentOnly(kind));

  ownTest("answers at once, dies, and comes back on the same port", async () => {
    await using server = await start();
    expect(await ping(server)).toBe(pong);
    await server.kill();
    expect(await ping(server)).toBeUndefined();
    await server.restart();
    expect(await ping(server)).toBe(pong);
  });

  ownTest("is silent while it is frozen, and goes on after", async () => {
    await using server = await start();
    await server.freeze();
    expect(await ping({ url: server.url, windowMs: silenceWindowMs })).toBeUndefined();
    await server.thaw();
    expect(await ping(server)).toBe(pong);
  });

  ownTest("can be killed and restarted while it is frozen", async () => {
    await using server = await start();
    await server.freeze();
    await server.restart();
    expect(await ping(server)).toBe(pong);
  });

  ownTest("is one of many, each on a port of its own", async () => {
    const servers: OwnServer[] = await Promise.all([start(), start(), start()]);
    try {
      expect(new Set(servers.map((server) => server.port)).size).toBe(3);
      expect(await Promise.all(servers.map(ping))).toEqual([pong, pong, pong]);
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
    expect(await Promise.all(servers.map(ping))).toEqual([undefined, undefined, undefined]);
  });

  ownTest("says that a port is taken when it was told which one to use", async () => {
    await using server = await start();
    const { port } = server;
    const second = kind === "nats" ? startNatsServer({ port }) : startRedisServer({ port });
    await expect(second).rejects.toThrow(new RegExp(`did not start on port ${port}.*(in use|allocated)`, "is"));
  });
});

describe("settings", () => {
  test.skipIf(lentOnly("nats"))("settings of a NATS server are production's, and can be overridden", async () => {
    await using usual = await startNatsServer();
    expect(await greeting(usual)).toMatchObject({ max_payload: 1_048_576 });
    await using small = await startNatsServer({ maxPayloadBytes: 65_536, extraConfig: "max_connections: 7" });
    expect(await greeting(small)).toMatchObject({ max_payload: 65_536 });
  });

  test.skipIf(lentOnly("nats"))(
    "settings of a NATS server can come from a file, whose port does not count",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "trunkline-harness-"));
      const configFile = join(folder, "nats.conf");
      await writeFile(configFile, "port: 4222\nmax_payload: 2000");
      await using server = await startNatsServer({ configFile });
      await rm(folder, { recursive: true });
      expect(await greeting(server)).toMatchObject({ max_payload: 2_000 });
    },
  );

  test.skipIf(lentOnly("nats"))("that do not parse are told", async () => {
    await expect(startNatsServer({ extraConfig: "max_payload: {" })).rejects.toThrow("nats-server did not start");
  });

  test.skipIf(lentOnly("redis"))("decide whether a Redis server forgets when it is killed", async () => {
    await using forgetful = await startRedisServer();
    await using persistent = await startRedisServer({ persistent: true });
    for (const server of [forgetful, persistent]) {
      expect(await ask(server, "SET word trunkline\r\n")).toBe("+OK");
      await server.kill();
      await server.restart();
    }
    expect(await ask(forgetful, "GET word\r\n")).toBe("$-1");
    expect(await ask(persistent, "GET word\r\n")).toBe("$9\r\ntrunkline");
  });
});

test("some server is there, lent or not", async () => {
  await using nats = await natsUrl();
  await using redis = await redisUrl();
  expect(nats.url).toMatch(/^(nats|tls|wss?):/);
  expect(redis.url).toMatch(/^rediss?:/);
});

function greeting(server: { url: string }): Promise<unknown> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    sockets.push(socket);
    socket.once("error", reject);
    socket.once("data", (chunk) => resolve(JSON.parse(chunk.toString().replace(/^INFO /, ""))));
  });
}
