import { changeKey } from "#shared/keys/change-key.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { findServers } from "../../harness/find-servers.ts";
import { startGatewayInProcess } from "../../harness/gateway-in-process.ts";
import { startRedisServer } from "../../harness/redis-server.ts";

/**
 * How long it takes until a revocation has cut the key's running stream at another gateway than the one that revoked:
 * 200 times, half of them with the connection killed on which that gateway would have heard of it. Run it with
 * `npm run bench:revocation`.
 */
const revocations = 200;

const { redis: found } = await findServers();
const server = await startRedisServer({ found });
const operator = await connectRedis({ url: server.url, keyPrefix: "" });
const [here, there] = [
  await startGatewayInProcess({ redisUrl: server.url }),
  await startGatewayInProcess({ redisUrl: server.url }),
];
try {
  const tookMs: Record<"heard" | "dropped", number[]> = { heard: [], dropped: [] };
  for (let time = 0; time < revocations; time += 1) {
    const { record, endpoint } = await there.issue();
    const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=10000 delay_ms=20" });
    const { keys } = here.store;
    const kind = time % 2 === 0 ? "heard" : "dropped";
    if (kind === "dropped") await killBlockedConnections();
    const startedAtMs = performance.now();
    await changeKey(record.id, { action: "revoked" }, { keys, clock, actor: { by: "bench" } });
    await stream.over;
    tookMs[kind].push(performance.now() - startedAtMs);
    if (!stream.events.at(-1)?.includes("key_invalid")) throw new Error("a stream ended otherwise");
  }
  for (const [kind, times] of Object.entries(tookMs)) {
    const sorted = times.toSorted((a, b) => a - b);
    const at = (share: number): string => (sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN).toFixed(0);
    process.stdout.write(
      `${kind.padEnd(8)} ${sorted.length} revocations: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms\n`,
    );
  }
} finally {
  await Promise.all([here[Symbol.asyncDispose](), there[Symbol.asyncDispose]()]);
  operator.close();
  await server.stop();
}

/** Every connection on which somebody waits for changes. */
async function killBlockedConnections(): Promise<void> {
  const list = String(await operator.run("list connections", (client) => client.call("CLIENT", "LIST")));
  for (const line of list.split("\n")) {
    const id = /\bid=(\d+)/.exec(line)?.[1];
    if (id !== undefined && /\bcmd=xread\b/.test(line)) {
      await operator.run("kill a connection", (client) => client.call("CLIENT", "KILL", "ID", id));
    }
  }
}
