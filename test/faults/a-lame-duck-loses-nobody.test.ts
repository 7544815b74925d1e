import { describe, expect, test } from "vitest";
import { Endpoint } from "../harness/endpoint.ts";
import { foundServers, lentOnly } from "../harness/found-servers.ts";
import { freePort } from "../harness/free-port.ts";
import { startNatsOnFiles } from "../harness/nats-on-files.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { startAgent, startGateway } from "../harness/start-trunkline.ts";
import { issueKey, testPepper } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { laneOf } from "./lane.ts";
import { ScriptedRequest } from "./scripted-request.ts";

const servers = 3;
/** The shortest that NATS allows, and what it adds. */
const leavesWithinMs = 45_000;
/** Longer than a server takes to have all its clients leave. */
const script = { tokens: 450, delayMs: 100 };
const { isWhole } = laneOf(process.env);

describe.skipIf(lentOnly("nats", "redis") || foundServers().nats.by !== "binary" || !isWhole)(
  "a NATS server of a cluster that is about to end",
  () => {
    test("loses no stream of anybody who was on it", { timeout: 150_000 }, async () => {
      await using parts = new AsyncDisposableStack();
      const ports = await Promise.all(Array.from({ length: servers }, freePort));
      const routes = ports.map((port) => `nats-route://127.0.0.1:${port}`).join(", ");
      const cluster = (port: number): string =>
        `cluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}] }\nlame_duck_duration: "30s"\nlame_duck_grace_period: "1s"`;
      const started = await Promise.all(ports.map((port) => startNatsOnFiles({ fixed: cluster(port) })));
      for (const each of started) parts.use(each);
      const [first, ...others] = started;
      if (first === undefined) throw new Error("there is no cluster");
      const natsUrl = [first, ...others].map(({ server }) => server.url).join(",");
      const redis = parts.use(await startRedisServer());
      const agents = await Promise.all(
        ["attic", "cellar"].map((machine) => startAgent({ natsUrl, machine, models: ["scripted"] })),
      );
      for (const agent of agents) parts.use(agent);
      const gateways = await Promise.all([1, 2].map(() => startGateway({ natsUrl, redisUrl: redis.url })));
      for (const gateway of gateways) parts.use(gateway);
      const { key } = await issueKey({ TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper });
      const endpoints = gateways.map(({ baseUrl }) => new Endpoint({ baseUrl, key }));
      for (const endpoint of endpoints) {
        const known = async () => (await endpoint.models()).ids.includes("scripted");
        await until(known, { what: "the machines to be known", timeoutMs: 10_000 });
      }
      const requests = endpoints.flatMap((endpoint, gateway) =>
        Array.from({ length: 10 }, (_, index) => {
          const nonce = `duck-${gateway}-${index}`;
          return new ScriptedRequest(endpoint, { nonce, model: "scripted", stream: true, script });
        }),
      );
      const begun = (): boolean => requests.every((request) => request.tokens > 3);
      await until(begun, { what: "all streams to be under way", timeoutMs: 10_000 });
      await first.lameDuck();
      const over = (): boolean => requests.every(({ outcome }) => outcome !== undefined);
      await until(over, { what: "all streams to end", timeoutMs: leavesWithinMs + 30_000, intervalMs: 100 });
      expect(requests.map(({ outcome }) => outcome)).toEqual(requests.map(() => "answered"));
      for (const request of requests) expect(request.text).toBe(request.expected);
    });
  },
);
