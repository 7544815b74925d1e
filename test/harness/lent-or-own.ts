import { foundServers } from "./found-servers.ts";
import { startNatsServer } from "./nats-server.ts";
import { startRedisServer } from "./redis-server.ts";

/**
 * Some server, for suites that do no harm to it. It is a fresh one unless a server was lent, and others may use a lent
 * one at the same time: such suites name their subjects and keys apart, and never flush.
 */
export interface SomeServer extends AsyncDisposable {
  readonly url: string;
  /** Ends a fresh server; a lent one goes on. */
  stop(): Promise<void>;
}

export async function natsUrl(): Promise<SomeServer> {
  const { nats } = foundServers();
  return nats.by === "lent" ? lentServer(nats.url) : startNatsServer();
}

export async function redisUrl(): Promise<SomeServer> {
  const { redis } = foundServers();
  return redis.by === "lent" ? lentServer(redis.url) : startRedisServer();
}

function lentServer(url: string): SomeServer {
  const nothing = (): Promise<void> => Promise.resolve();
  return { url, stop: nothing, [Symbol.asyncDispose]: nothing };
}
