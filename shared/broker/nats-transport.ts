import { createConnection } from "node:net";
import type { ConnectionOptions, NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { connectTimeoutMs } from "./nats-connection.ts";

/** The port of a URL without one. */
const natsPort = 4222;

/**
 * Connects by TCP to one of these servers. NATS speaks first, and one that says nothing is found out before: the library
 * leaves the socket of a failed connect open, so a silent server would hold one for each attempt.
 */
export async function connectTcp(servers: readonly string[], options: ConnectionOptions): Promise<NatsConnection> {
  await Promise.any(servers.map(heardFrom)).catch(({ errors: [first] }: AggregateError) => Promise.reject(first));
  return connect({ ...options, servers: [...servers] });
}

/** Resolves when a server says its first bytes. */
function heardFrom(server: string): Promise<void> {
  const { hostname: host, port } = new URL(server);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const address = { host: host.replaceAll(/[[\]]/g, ""), port: Number(port || natsPort) };
  const socket = createConnection({ ...address, timeout: connectTimeoutMs })
    .once("data", () => resolve())
    .once("timeout", () => reject(new Error("timeout")))
    .once("error", reject)
    .once("close", () => reject(new Error("")));
  return promise.finally(() => socket.destroy());
}
