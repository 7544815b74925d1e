import { Endpoint } from "./endpoint.ts";
import { startNatsServer } from "./nats-server.ts";
import type { OwnServer } from "./own-server.ts";
import { startRedisServer } from "./redis-server.ts";
import { startAgent, startGateway, type AgentProcess, type GatewayProcess } from "./start-trunkline.ts";
import { issueKey, testPepper, type Settings } from "./trunkline-command.ts";
import { until } from "./until.ts";

interface Machine {
  /** Which of the demonstration models it offers; all of them unless told. */
  readonly models?: readonly string[];
  readonly env?: Settings;
}

export interface Fleet extends AsyncDisposable {
  readonly nats: OwnServer;
  readonly redis: OwnServer;
  readonly gateways: readonly GatewayProcess[];
  /** One for each gateway, all with one key that may use every model. */
  readonly endpoints: readonly Endpoint[];
  /** The first of them, for tests that need one. */
  readonly endpoint: Endpoint;
  /** The settings that name its key store, for the command line. */
  readonly keyStore: Settings;
  agent(machine: string): AgentProcess;
  /** Starts one more machine, or one again whose process has ended. */
  startAgent(machine: string, as?: Machine): Promise<AgentProcess>;
}

const knownWithinMs = 10_000;

/** Gateways and agents as processes on a NATS and a Redis of their own, ready and known to each other. */
export async function startFleet(wish: {
  readonly gateways?: number;
  readonly machines: Readonly<Record<string, Machine>>;
}): Promise<Fleet> {
  const parts = new AsyncDisposableStack();
  try {
    return await build(wish, parts);
  } catch (error) {
    await parts.disposeAsync();
    throw error;
  }
}

async function build(wish: Parameters<typeof startFleet>[0], parts: AsyncDisposableStack): Promise<Fleet> {
  const servers = await Promise.all([startNatsServer(), startRedisServer()]);
  const [nats, redis] = servers;
  for (const server of servers) parts.use(server);
  const agents = new Map<string, AgentProcess>();
  const startOne = async (machine: string, as: Machine = {}): Promise<AgentProcess> => {
    const agent = parts.use(await startAgent({ natsUrl: nats.url, machine, ...as }));
    agents.set(machine, agent);
    return agent;
  };
  const startOneGateway = async (): Promise<GatewayProcess> =>
    parts.use(await startGateway({ natsUrl: nats.url, redisUrl: redis.url }));

  const keyStore = { TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper };
  const [{ key }, gateways] = await Promise.all([
    issueKey(keyStore),
    Promise.all(Array.from({ length: wish.gateways ?? 1 }, startOneGateway)),
    ...Object.entries(wish.machines).map(([machine, as]) => startOne(machine, as)),
  ]);
  const endpoints = gateways.map(({ baseUrl }) => new Endpoint({ baseUrl, key }));
  const [endpoint] = endpoints;
  if (endpoint === undefined) throw new Error("a fleet needs a gateway");
  await untilKnown(
    endpoints,
    Object.values(wish.machines).flatMap(({ models }) => models ?? []),
  );
  return {
    nats,
    redis,
    gateways,
    endpoints,
    endpoint,
    keyStore,
    startAgent: startOne,
    agent(machine) {
      const agent = agents.get(machine);
      if (agent === undefined) throw new Error(`this fleet has no machine ${machine}`);
      return agent;
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

async function untilKnown(endpoints: readonly Endpoint[], models: readonly string[]): Promise<void> {
  for (const endpoint of endpoints) {
    const known = async (): Promise<boolean> => {
      const { ids } = await endpoint.models();
      return models.every((model) => ids.includes(model));
    };
    await until(known, { what: `a gateway to list ${models.join(", ")}`, timeoutMs: knownWithinMs });
  }
}
