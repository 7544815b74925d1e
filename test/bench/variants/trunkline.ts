import type { KeyLimits } from "#shared/keys/key-record.ts";
import { MetricsText } from "../../harness/metrics-text.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import { Operator } from "../../harness/operator.ts";
import { startRedisServer } from "../../harness/redis-server.ts";
import { startAgent, startGateway } from "../../harness/start-trunkline.ts";
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
}): Promise<Site> {
  const { farEndPort, env, agentEnv } = options;
  await using parts = new AsyncDisposableStack();
  const found = await ownServers();
  const nats = parts.use(await startNatsServer({ found: found.nats }));
  const redis = parts.use(await startRedisServer({ found: found.redis }));
  const [natsUrl, redisUrl] = [nats.url, redis.url];
  await using operator = await Operator.on({ redisUrl });
  const { token } = await operator.issue({ name: "bench", scopes: ["*"], ttlMs: keyTtlMs, limits });
  const runtime =
    farEndPort === undefined
      ? {}
      : { TRUNKLINE_RUNTIME: "openai", TRUNKLINE_RUNTIME_URL: `http://127.0.0.1:${farEndPort}` };
  const gateway = parts.use(await startGateway({ natsUrl, redisUrl, env: { ...env } }));
  const queue = { TRUNKLINE_QUEUE_MAX: "10000" };
  const agent = parts.use(
    await startAgent({ natsUrl, machine: "bench", env: { ...env, ...queue, ...runtime, ...agentEnv } }),
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
