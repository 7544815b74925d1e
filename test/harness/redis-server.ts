import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FoundServer, foundServers, lentServer, type SomeServer } from "./found-servers.ts";
import { type OwnServer, type ServerBody, startOwnServer } from "./own-server.ts";
import { ServerContainer } from "./server-container.ts";
import { ServerProcess } from "./server-process.ts";
import type { Redis } from "ioredis";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";

export interface RedisServerOptions {
  /**
   * The kernel has every write before it is answered, so a restart after a kill has lost nothing. Else it comes back
   * empty. Nothing waits for a disk: on a slow one that takes longer than a gateway waits for Redis.
   */
  persistent?: boolean;
  port?: number;
  /** Follows the server at this port of this host. */
  replicaOf?: number;
  /** Outside of vitest, where nothing was provided: what `findServers` gave. */
  found?: FoundServer;
}

const clientPort = 6379;

/** Starts a Redis server that belongs to the caller. */
export async function startRedisServer(options: RedisServerOptions = {}): Promise<OwnServer> {
  const found = options.found ?? foundServers().redis;
  if (found.by === "lent") throw new Error(`No Redis server of one's own: ${found.variable} only lends one`);
  const saving = ["--save", "", "--appendonly", options.persistent === true ? "yes" : "no", "--appendfsync", "no"];
  if (options.replicaOf !== undefined) saving.push("--replicaof", "127.0.0.1", String(options.replicaOf));
  const open = async (port: number): Promise<ServerBody> =>
    found.by === "docker"
      ? inContainer({ image: found.image, saving, port })
      : asProcess({ binary: found.path, saving, port });
  return startOwnServer({
    title: "redis-server",
    scheme: "redis",
    port: options.port,
    open,
    answers: async ({ host, processId }, port) => {
      const info = await readRedisInfo(new URL(`redis://${host}:${port}`));
      return processId === undefined || info.processId === processId;
    },
  });
}

interface Run {
  readonly saving: readonly string[];
  readonly port: number;
}

async function asProcess({ binary, saving, port }: Run & { binary: string }): Promise<ServerBody> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-redis-"));
  const args = ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, ...saving];
  return new ServerProcess({ binary, args, folder });
}

function inContainer({ image, saving, port }: Run & { image: string }): ServerBody {
  return new ServerContainer({
    image,
    command: ["redis-server", "--port", String(clientPort), "--protected-mode", "no", "--dir", "/data", ...saving],
    ports: { inside: clientPort, outside: port },
  });
}

/** All that a Redis holds, as text: each name with whatever is under it. */
export async function dumpOf(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const names = await redis.keys("*");
  const dumped = names.map(async (name): Promise<[string, string]> => [
    name,
    JSON.stringify(await valueAt(redis, name)),
  ]);
  return new Map(await Promise.all(dumped));
}

async function valueAt(redis: Redis, name: string): Promise<unknown> {
  const type = await redis.type(name);
  switch (type) {
    case "none":
      return undefined;
    case "string":
      return redis.get(name);
    case "hash":
      return redis.hgetall(name);
    case "set":
      return redis.smembers(name);
    case "zset":
      return redis.zrange(name, "0", "-1", "WITHSCORES");
    case "list":
      return redis.lrange(name, 0, -1);
    case "stream":
      return redis.xrange(name, "-", "+");
    default:
      throw new Error(`nobody here can read what is under ${name}, a ${type}`);
  }
}

export interface RedisInfo {
  readonly version: string;
  readonly processId: number;
}

const timeoutMs = 1_000;
const defaultPort = 6379;

/** Asks INFO and then PING over a socket of its own; rejects unless the server says PONG, so also while it loads. */
export function readRedisInfo(url: URL): Promise<RedisInfo> {
  return new Promise((resolve, reject) => {
    const address = { host: url.hostname, port: Number(url.port || defaultPort), timeout: timeoutMs };
    const socket =
      url.protocol === "rediss:" ? connectTls({ ...address, servername: url.hostname }) : connectTcp(address);
    let text = "";
    const fail = (why: string): void => {
      socket.destroy();
      reject(new Error(why));
    };
    socket.setEncoding("utf8");
    socket.on("error", reject);
    socket.on("timeout", () => fail(`no PONG within ${timeoutMs} ms`));
    socket.on("close", () => fail("closed before a PONG came"));
    socket.on("data", (chunk: string) => {
      text += chunk;
      const refusal = /^-.*$/m.exec(text)?.[0];
      if (refusal !== undefined) fail(`it answers ${refusal}`);
      if (!/^\+PONG\r$/m.test(text)) return;
      socket.destroy();
      const field = (name: string): string => new RegExp(`^${name}:(.*)\r$`, "m").exec(text)?.[1] ?? "";
      resolve({ version: field("redis_version"), processId: Number(field("process_id")) });
    });
    socket.write([...login(url), ["INFO", "server"], ["PING"]].map(encodeCommand).join(""));
  });
}

function login(url: URL): string[][] {
  if (url.password === "") return [];
  const user = url.username === "" ? [] : [decodeURIComponent(url.username)];
  return [["AUTH", ...user, decodeURIComponent(url.password)]];
}

function encodeCommand(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

/** Some Redis: a fresh one unless one was lent. */
export async function redisUrl(): Promise<SomeServer> {
  const { redis } = foundServers();
  return redis.by === "lent" ? lentServer(redis.url) : startRedisServer();
}
