import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { MetricsText } from "../../harness/metrics-text.ts";
import { startOperatorNats } from "../../harness/infra/operator-nats.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import { Operator } from "../../harness/operator.ts";
import { startRedisServer } from "../../harness/redis-server.ts";
import { startAgent, startGateway, startPairedAgent } from "../../harness/start-trunkline.ts";
import type { Settings } from "../../harness/trunkline-command.ts";
import type { TrunklineProcess } from "../../harness/trunkline-process.ts";
import { until } from "../../harness/until.ts";
import { ownServers, ownServersMissing } from "./own-servers.ts";
import { pathProcess, runningParts, untilAnswers, type RunningVariant, type Variant } from "./variant.ts";

const machineKnownMs = 30_000;
const keyTtlMs = 86_400_000;
/** Limits of every kind, so high that they refuse nothing. */
const limits: KeyLimits = {
  requestsPerMinute: 1_000_000,
  tokensPerMinute: 1_000_000_000,
  concurrency: 10_000,
  budget: { tokens: 1_000_000_000_000, per: "day" },
};

/** Trunkline with everything on: a key with limits, usage, metrics and log. */
export const trunkline: Variant = {
  name: "trunkline",
  title: "Trunkline: gateway, agent, NATS and Redis, with a key that has limits",
  missing: ownServersMissing,
  start: ({ farEndPort }) =>
    runningParts(async (parts) => {
      const site = parts.use(await startSite({ farEndPort, agentEnv: { TRUNKLINE_SLOTS: "10000" } }));
      const { gateway, agent, ...running } = site;
      await untilAnswers(running, [gateway, agent]);
      return running;
    }),
};

/** The same machine behind a tunnel of the gateway, which connects it to NATS in operator mode. */
export const tunnelled: Variant = {
  name: "tunnelled",
  title: "Trunkline with its machine behind a tunnel, only with streams at a pace",
  missing: ownServersMissing,
  scenarios: ["lonely", "paced-500"],
  start: ({ farEndPort }) =>
    runningParts(async (parts) => {
      const agentEnv = { TRUNKLINE_SLOTS: "10000" };
      const { gateway, agent, ...running } = parts.use(await startSite({ farEndPort, agentEnv, tunnelled: true }));
      await untilAnswers(running, [gateway, agent]);
      return running;
    }),
};

/** The same site, which sends the traces of one request in ten to a collector that takes everything. */
export const traced: Variant = {
  name: "traced",
  title: "Trunkline with one request in ten traced, only with whole answers",
  missing: ownServersMissing,
  scenarios: ["whole-32", "whole-1"],
  start: ({ farEndPort }) =>
    runningParts(async (parts) => {
      const collector = createServer((request, response) => request.resume().once("end", () => response.end()));
      parts.defer(() => collector.close().closeAllConnections());
      await once(collector.listen(0, "127.0.0.1"), "listening");
      const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
      const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };
      const agentEnv = { TRUNKLINE_SLOTS: "10000" };
      const { gateway, agent, ...running } = parts.use(await startSite({ farEndPort, env, agentEnv }));
      await untilAnswers(running, [gateway, agent]);
      return running;
    }),
};

/** The same site, asked by clients of the Messages API. */
export const messages: Variant = {
  name: "messages",
  title: "Trunkline at /v1/messages, only with chunks",
  missing: ownServersMissing,
  scenarios: ["burst", "paced-100", "paced-500"],
  start: async (options) => ({ ...(await trunkline.start(options)), path: "/v1/messages" }),
};

export interface Site extends RunningVariant {
  readonly gateway: TrunklineProcess;
  readonly agent: TrunklineProcess;
}

/** A gateway and an agent as operators start them, on a NATS and a Redis of their own. */
export async function startSite(options: {
  /** The port of an OpenAI-shaped runtime. Without it the agent runs the demonstration. */
  readonly farEndPort?: number;
  readonly env?: Settings;
  readonly agentEnv?: Settings;
  /** True if the machine is paired and connects by a tunnel, on NATS in operator mode. */
  readonly tunnelled?: boolean;
}): Promise<Site> {
  const { farEndPort, env, agentEnv, tunnelled: isTunnelled = false } = options;
  await using parts = new AsyncDisposableStack();
  const found = await ownServers();
  const operatorNats = isTunnelled ? await startOperatorNats({ found: found.nats }) : undefined;
  const nats = parts.use(operatorNats ?? (await startNatsServer({ found: found.nats })));
  const redis = parts.use(await startRedisServer({ found: found.redis }));
  const [natsUrl, redisUrl] = [operatorNats?.connection.url ?? nats.url, redis.url];
  await using operator = await Operator.on({ redisUrl });
  const { token } = await operator.issue({ name: "bench", scopes: ["*"], ttlMs: keyTtlMs, limits });
  const runtime =
    farEndPort === undefined
      ? {}
      : { TRUNKLINE_RUNTIME: "openai", TRUNKLINE_RUNTIME_URL: `http://127.0.0.1:${farEndPort}` };
  const gatewayEnv = { ...operatorNats?.gatewaySettings, ...env };
  const gateway = parts.use(await startGateway({ natsUrl, redisUrl, env: gatewayEnv }));
  const machine = "bench";
  const queue = { TRUNKLINE_QUEUE_MAX: "10000" };
  const asAgent = { machine, env: { ...env, ...queue, ...runtime, ...agentEnv } };
  const joinLine = () => operator.joinLine(machine, new URL(gateway.baseUrl).origin);
  const agent = parts.use(
    isTunnelled
      ? await startPairedAgent({ line: await joinLine(), ...asAgent })
      : await startAgent({ natsUrl, ...asAgent }),
  );
  const isKnown = async (): Promise<boolean> => {
    const metrics = await MetricsText.scrape(gateway.operationsUrl);
    return metrics.value("trunkline_machines", { state: "ready" }) === 1;
  };
  await until(isKnown, { what: "the gateway to know its machine", timeoutMs: machineKnownMs, intervalMs: 20 });
  const running = parts.move();
  return {
    port: Number(new URL(gateway.baseUrl).port),
    headers: { authorization: `Bearer ${token.reveal()}` },
    processes: [
      pathProcess("gateway", gateway),
      pathProcess("nats", nats),
      pathProcess("agent", agent),
      pathProcess("redis", redis),
    ],
    gateway,
    agent,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
