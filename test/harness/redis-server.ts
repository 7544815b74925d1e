import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FoundServer, foundServers } from "./found-servers.ts";
import { type OwnServer, type ServerBody, startOwnServer } from "./own-server.ts";
import { readRedisInfo } from "./redis-info.ts";
import { ServerContainer } from "./server-container.ts";
import { ServerProcess } from "./server-process.ts";

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
