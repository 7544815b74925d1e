import { expect, test } from "vitest";
import { z } from "zod";
import { Endpoint, refusalOf } from "../harness/endpoint.ts";
import { foundServers, lentOnly } from "../harness/found-servers.ts";
import { freePort } from "../harness/free-port.ts";
import { startNatsOnFiles } from "../harness/nats-on-files.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { startAgent, startGateway } from "../harness/start-trunkline.ts";
import { issueKey, testPepper } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { onlyInWholeLane } from "./lane.ts";

const users = (names: readonly string[]): string =>
  `authorization { users = [${names.map((name) => `{ user: ${name}, password: secret }`).join(", ")}] }`;
const noticedWithinMs = 2_000;
const healsWithinMs = 31_000;
const watchedForMs = 5_000;
/** With a pause of a tenth of a second between two of them it would be fifty. */
const attemptsMax = 15;
const connections = z.looseObject({ total_connections: z.number() });

test.skipIf(
  lentOnly("nats", "redis") ||
    foundServers().nats.by !== "binary" ||
    onlyInWholeLane("a credential that is taken back"),
)(
  "a gateway whose credential NATS takes back is not ready, tells at once, asks ever more rarely, and serves when it is given back",
  { timeout: 90_000 },
  async () => {
    const monitorPort = await freePort();
    const fixed = `http: "127.0.0.1:${monitorPort}"`;
    await using nats = await startNatsOnFiles({ fixed, changeable: users(["gateway", "attic"]) });
    await using redis = await startRedisServer();
    const as = (user: string): string => nats.server.url.replace("nats://", `nats://${user}:secret@`);
    await using _agent = await startAgent({ natsUrl: as("attic"), machine: "attic", models: ["scripted"] });
    await using gateway = await startGateway({ natsUrl: as("gateway"), redisUrl: redis.url });
    const { key } = await issueKey({ TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper });
    const endpoint = new Endpoint({ baseUrl: gateway.baseUrl, key });
    const chat = () => endpoint.chat({ model: "scripted", says: "/script tokens=1" });
    const attempts = async (): Promise<number> => {
      const response = await fetch(`http://127.0.0.1:${monitorPort}/varz`);
      return connections.parse(await response.json()).total_connections;
    };
    await until(async () => (await chat()).ok, { what: "the gateway to serve" });

    await nats.reload(users(["attic"]));
    const ready = async () => (await fetch(`${gateway.operationsUrl}/readyz`)).ok;
    await until(async () => !(await ready()), { what: "the gateway to be not ready", timeoutMs: noticedWithinMs });
    expect(await refusalOf(chat())).toMatchObject({ status: 503, code: "backend_unavailable" });
    const before = await attempts();
    const sinceMs = performance.now();
    await until(() => performance.now() - sinceMs > watchedForMs, { what: "a while to pass", timeoutMs: 10_000 });
    expect((await attempts()) - before).toBeLessThan(attemptsMax);
    expect((await gateway.stderr()).match(/NATS refuses this credential/g)).toHaveLength(1);

    await nats.reload(users(["gateway", "attic"]));
    await until(async () => (await ready()) && (await chat()).ok, {
      what: "it to serve again",
      timeoutMs: healsWithinMs,
    });
  },
);
