import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import type { FastifyInstance } from "fastify";
import { afterEach, expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import type { ConnectionBound, ConnectionBounds } from "../../services/gateway/http/bound-connections.ts";
import { Exposition } from "../../services/gateway/metrics/exposition.ts";
import { measureRequests } from "../../services/gateway/metrics/request-meters.ts";
import { createServer } from "../../services/gateway/server.ts";
import { until } from "../harness/until.ts";

let server: FastifyInstance;
const open: Socket[] = [];
afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  await server.close();
});

async function serve(connections: ConnectionBounds, trustedProxies: readonly string[] = []) {
  const logged: string[] = [];
  const closed: ConnectionBound[] = [];
  const exposition = new Exposition();
  const meter = measureRequests(exposition, { offered: () => undefined });
  const count = meter.connectionClosed;
  meter.connectionClosed = (bound) => {
    closed.push(bound);
    count(bound);
  };
  const log = createLog({ level: "warn", name: "test", write: (line) => void logged.push(line) });
  const limit = { bodyBytesMax: 1_024, bodyLimitName: "bytes" };
  server = createServer({ log, ...limit, connections, meter, trustedProxies });
  server.get("/healthz", async () => ({ status: "ok" }));
  await server.listen({ host: "0.0.0.0", port: 0 });
  const address = server.server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { port, logged, closed, shown: async () => (await exposition.show(undefined)).text };
}

async function connectFrom(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port, localAddress: host });
  open.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

/** Whether a connection is served, or closed without a word. */
async function isServed(socket: Socket): Promise<boolean> {
  socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  let told = "";
  socket.on("data", (bytes) => (told += bytes.toString()));
  await until(() => socket.destroyed || told.includes('"ok"'), { what: "an answer, or the end of the connection" });
  return told.includes('"ok"');
}

/** An address of this host by which it is not known to be this host. */
const outer = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.internal === false && each.family === "IPv4")?.address;

test("a new connection above TRUNKLINE_CONNECTIONS_MAX is closed, counted and logged, and is served once another has left", async () => {
  const { port, logged, closed, shown } = await serve({ connectionsMax: 2, connectionsPerAddressMax: 100 });
  const sockets = [await connectFrom("127.0.0.1", port), await connectFrom("127.0.0.1", port)];
  expect(await Promise.all(sockets.map(isServed))).toEqual([true, true]);
  expect(await isServed(await connectFrom("127.0.0.1", port))).toBe(false);
  expect(await isServed(await connectFrom("127.0.0.1", port))).toBe(false);
  expect(closed).toEqual(["total", "total"]);
  expect(logged).toEqual([expect.stringContaining("TRUNKLINE_CONNECTIONS_MAX")]);
  expect(await shown()).toContain('trunkline_connections_closed_total{reason="total"} 2');
  sockets[0]?.destroy();
  await until(async () => isServed(await connectFrom("127.0.0.1", port)), { what: "a new connection to be served" });
});

test.skipIf(outer === undefined)(
  "a port for proxies alone closes the connections of all others but this host's",
  async () => {
    const bounds = { connectionsMax: 100, connectionsPerAddressMax: 100, onlyProxies: true };
    const before = await serve(bounds, ["203.0.113.0/24"]);
    expect(await isServed(await connectFrom(outer ?? "", before.port))).toBe(false);
    expect(await isServed(await connectFrom("127.0.0.1", before.port))).toBe(true);
    expect([before.closed, before.logged]).toEqual([
      ["stranger"],
      [expect.stringMatching(/no proxy of TRUNKLINE_TRUSTED_PROXIES/)],
    ]);
    await server.close();
    const { port } = await serve(bounds, ["203.0.113.0/24", outer ?? ""]);
    expect(await isServed(await connectFrom(outer ?? "", port))).toBe(true);
  },
);

test.skipIf(outer === undefined)(
  "an address takes no more connections than its bound, and others are served",
  async () => {
    const { port, logged, closed } = await serve({ connectionsMax: 100, connectionsPerAddressMax: 1 });
    const [first, second] = [await connectFrom(outer ?? "", port), await connectFrom(outer ?? "", port)];
    expect([await isServed(first), await isServed(second)]).toEqual([true, false]);
    expect(await isServed(await connectFrom("127.0.0.1", port))).toBe(true);
    expect(closed).toEqual(["address"]);
    expect(logged).toEqual([expect.stringContaining("TRUNKLINE_CONNECTIONS_PER_ADDRESS_MAX")]);
    first.destroy();
    await until(async () => isServed(await connectFrom(outer ?? "", port)), { what: "the address to be served again" });
  },
);

test.skipIf(outer === undefined)("a trusted proxy may open connections for all of its clients", async () => {
  const { port } = await serve({ connectionsMax: 100, connectionsPerAddressMax: 1 }, [`${outer}/32`]);
  const sockets = [await connectFrom(outer ?? "", port), await connectFrom(outer ?? "", port)];
  expect(await Promise.all(sockets.map(isServed))).toEqual([true, true]);
});
