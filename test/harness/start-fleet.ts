import { Endpoint } from "./endpoint.ts";
import { startNatsServer } from "./nats-server.ts";
import type { OwnServer } from "./own-server.ts";
import { startRedisServer } from "./redis-server.ts";
import { startAgent, startGateway, type AgentProcess, type GatewayProcess } from "./start-trunkline.ts";
import { issueKey, testPepper, type Settings } from "./trunkline-command.ts";
import { until } from "./until.ts";

export interface Fleet extends AsyncDisposable {
  readonly nats: OwnServer;
  readonly redis: OwnServer;
  readonly gateways: readonly GatewayProcess[];
  /** One for each gateway, all with one key that may use every model. */
  readonly endpoints: readonly Endpoint[];
  /** The settings that name its key store, for the command line. */
  readonly keyStore: Settings;
  agent(machine: string): AgentProcess;
  /** Starts one more machine, or one again whose process has ended. */
  startAgent(machine: string, models?: readonly string[]): Promise<AgentProcess>;
}

/** Gateways and agents as processes on a NATS and a Redis of their own, ready and known to each other. */
export async function startFleet(wish: {
  readonly gateways?: number;
  /** The machines by their names, and which demonstration models each offers. */
  readonly machines: Readonly<Record<string, readonly string[]>>;
}): Promise<Fleet> {
  await using undo = new AsyncDisposableStack();
  const [nats, redis] = await Promise.all([startNatsServer(), startRedisServer()]);
  undo.use(nats);
  undo.use(redis);
  const agents = new Map<string, AgentProcess>();
  const startOne = async (machine: string, models?: readonly string[]): Promise<AgentProcess> => {
    const agent = await startAgent({ natsUrl: nats.url, machine, ...(models === undefined ? {} : { models }) });
    agents.set(machine, undo.use(agent));
    return agent;
  };
  const keyStore = { TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper };
  const [key, gateways] = await Promise.all([
    issueKey(keyStore),
    Promise.all(
      Array.from({ length: wish.gateways ?? 1 }, async () =>
        undo.use(await startGateway({ natsUrl: nats.url, redisUrl: redis.url })),
      ),
    ),
    ...Object.entries(wish.machines).map(([machine, models]) => startOne(machine, models)),
  ]);
  const endpoints = gateways.map(({ baseUrl }) => new Endpoint({ baseUrl, key: key.key }));
  const wanted = Object.values(wish.machines).flat();
  for (const endpoint of endpoints) {
    const listed = async () => wanted.every(((ids) => (id) => ids.includes(id))((await endpoint.models()).ids));
    if (wanted.length > 0) await until(listed, { what: `the models ${wanted.join(", ")}`, timeoutMs: 10_000 });
  }
  const parts = undo.move();
  return {
    nats,
    redis,
    gateways,
    endpoints,
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
