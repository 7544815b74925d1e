import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Endpoint } from "./endpoint.ts";
import { foundServers } from "./found-servers.ts";
import { freePort } from "./free-port.ts";
import { type OperatorNats, startOperatorNats } from "./infra/operator-nats.ts";
import { startNatsServer } from "./nats-server.ts";
import { Operator } from "./operator.ts";
import type { OwnServer } from "./own-server.ts";
import { startRedisServer } from "./redis-server.ts";
import {
  startAgent,
  startGateway,
  startPairedAgent,
  type AgentProcess,
  type GatewayProcess,
} from "./start-trunkline.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { testPepper, type Settings } from "./trunkline-command.ts";
import { until } from "./until.ts";
import { WireWatch } from "./wire-watch.ts";

interface Machine {
  /** Which of the demonstration models it offers; all of them unless told. */
  readonly models?: readonly string[];
  readonly env?: Settings;
}

/** A way between two processes that a test can make bad. */
export type Way = "clients" | "machines" | "gateways" | "redis";

export interface FleetWish {
  readonly gateways?: number;
  readonly machines: Readonly<Record<string, Machine>>;
  /** For every process of ours, such as the scale of time. */
  readonly env?: Settings;
  readonly gatewayEnv?: Settings;
  /** Where proxies stand: before each gateway's clients, between each machine or gateway and NATS, before Redis. */
  readonly proxied?: readonly Way[];
  /**
   * Machines are paired and connect by tunnels of the last gateway, with NATS in operator mode. Otherwise they connect to
   * NATS themselves.
   */
  readonly tunnels?: boolean;
  /** Put behind the settings of the NATS server. */
  readonly natsConfig?: string;
  /** Whether Redis has all that it was told when it comes back after a kill. */
  readonly redisKeeps?: boolean;
}

export interface Fleet extends AsyncDisposable {
  readonly nats: OwnServer;
  /** The options by which a test connects to NATS. */
  readonly natsConnection: NatsConnection;
  /** Where NATS tells of itself; not there in a container. */
  readonly natsMonitorUrl: string | undefined;
  readonly redis: OwnServer;
  readonly gateways: readonly GatewayProcess[];
  /** The one that holds the first place now. */
  readonly gateway: GatewayProcess;
  /** One for each gateway, all with one key that may use every model. */
  readonly endpoints: readonly Endpoint[];
  /** The first of them, for tests that need one. */
  readonly endpoint: Endpoint;
  /** The settings that name its key store, for the command line. */
  readonly keyStore: Settings;
  /** The admin API of the first gateway, with a new admin key. */
  admin(): Promise<Endpoint>;
  /** The settings of an operator with a new admin key and the first gateway's operations port, for the command line. */
  operatorSettings(): Promise<Settings>;
  agent(machine: string): AgentProcess;
  /** Starts one more machine, or one again whose process has ended: as it was, unless told. */
  startAgent(machine: string, as?: Machine): Promise<AgentProcess>;
  /** Every machine whose process was started, alive or not. */
  readonly machines: readonly string[];
  /** Those that ended and were started again; what they logged can still be read. */
  readonly formerGateways: readonly GatewayProcess[];
  /** Starts a gateway again whose process has ended; it takes the place of that one. */
  restartGateway(place: number): Promise<GatewayProcess>;
  /** The proxy on one machine's, or one gateway's way, where the fleet was started with such. */
  wayOf(way: Way, of?: string | number): TcpProxy;
  /** What passed between the machines and NATS, where proxies stand there. */
  readonly wire: WireWatch;
  /** Tokens that share their message on the wire with the end of their stream, so that a proxy holds both or none. */
  readonly tokensHeldWithTheEnd: number;
}

type NatsConnection = Partial<OperatorNats["connection"]> & { readonly url: string };

const knownWithinMs = 10_000;

/** Gateways and agents as processes on a NATS and a Redis of their own, ready and known to each other. */
export async function startFleet(wish: FleetWish): Promise<Fleet> {
  const parts = new AsyncDisposableStack();
  try {
    return await build(wish, parts);
  } catch (error) {
    await parts.disposeAsync();
    throw error;
  }
}

async function build(wish: FleetWish, parts: AsyncDisposableStack): Promise<Fleet> {
  const [broker, redis] = await Promise.all([
    startNats(wish),
    startRedisServer({ persistent: wish.redisKeeps ?? false }),
  ]);
  const { nats, natsConnection } = broker;
  for (const server of [nats, redis]) parts.use(server);
  const operator = parts.use(await Operator.on({ redisUrl: redis.url }));

  const wire = new WireWatch();
  const ways = new Ways(wish.proxied ?? [], parts);
  const formerGateways: GatewayProcess[] = [];
  const agents = new Map<string, AgentProcess>();
  const gateways: GatewayProcess[] = [];
  const kept = new Map<string, Machine>(Object.entries(wish.machines));
  const startOne = async (machine: string, as: Machine = kept.get(machine) ?? {}): Promise<AgentProcess> => {
    kept.set(machine, as);
    const target = wish.tunnels === true ? new URL(gateways.at(-1)?.baseUrl ?? "").origin : nats.url;
    const url = await ways.through("machines", machine, target, wire);
    const env = { ...wish.env, ...as.env };
    const starting =
      folder === undefined
        ? startAgent({ natsUrl: url, machine, ...as, env })
        : startPairedAgent({
            line: agents.has(machine) ? undefined : await operator.joinLine(machine, url),
            machine,
            ...as,
            env: { TRUNKLINE_STATE_DIR: join(folder, machine), ...env },
          });
    const agent = parts.use(await starting);
    agents.set(machine, agent);
    return agent;
  };
  const startOneGateway = async (place: number, port = "0"): Promise<GatewayProcess> => {
    const natsUrl = await ways.through("gateways", place, natsConnection.url);
    const redisUrl = await ways.through("redis", 0, redis.url);
    const env = {
      ...broker.gatewaySettings,
      TRUNKLINE_NATS_URL: natsUrl,
      ...wish.env,
      ...wish.gatewayEnv,
      TRUNKLINE_PORT: port,
    };
    return parts.use(await startGateway({ natsUrl, redisUrl, env }));
  };

  const keyStore = { TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper };
  const folder = wish.tunnels === true ? await folderOf(parts) : undefined;
  const startMachines = () => Promise.all(Object.keys(wish.machines).map((machine) => startOne(machine)));
  const [key] = await Promise.all([
    keyBy(operator),
    ...Array.from({ length: wish.gateways ?? 1 }, async (_, place) => {
      gateways[place] = await startOneGateway(place);
    }),
    ...(folder === undefined ? [startMachines()] : []),
  ]);
  if (folder !== undefined) await startMachines();
  const endpoints = await Promise.all(
    gateways.map(async ({ baseUrl }, place) => {
      const there = await ways.through("clients", place, baseUrl);
      return new Endpoint({ baseUrl: there, key });
    }),
  );
  const [endpoint] = endpoints;
  if (endpoint === undefined) throw new Error("a fleet needs a gateway");
  await untilKnown(
    endpoints,
    Object.values(wish.machines).flatMap(({ models }) => models ?? []),
  );
  return {
    nats,
    natsConnection,
    natsMonitorUrl: broker.natsMonitorUrl,
    redis,
    gateways,
    get gateway() {
      const [first] = gateways;
      if (first === undefined) throw new Error("this fleet has no gateway");
      return first;
    },
    formerGateways,
    endpoints,
    endpoint,
    keyStore,
    async admin() {
      const { token } = await operator.issue({ kind: "admin" });
      return new Endpoint({ baseUrl: `${gateways[0]?.operationsUrl}/admin/v1`, key: token.reveal() });
    },
    async operatorSettings() {
      const { token } = await operator.issue({ kind: "admin" });
      return {
        TRUNKLINE_OPERATIONS_URL: gateways[0]?.operationsUrl ?? "",
        TRUNKLINE_ADMIN_KEY: token.reveal(),
        TRUNKLINE_STATE_DIR: "/nowhere",
      };
    },
    wire,
    tokensHeldWithTheEnd: wish.tunnels === true ? 1 : 0,
    startAgent: startOne,
    get machines() {
      return [...agents.keys()];
    },
    agent(machine) {
      const agent = agents.get(machine);
      if (agent === undefined) throw new Error(`this fleet has no machine ${machine}`);
      return agent;
    },
    async restartGateway(place) {
      const before = gateways[place];
      if (before === undefined) throw new Error(`this fleet has no gateway ${place}`);
      const again = await startOneGateway(place, new URL(before.baseUrl).port);
      formerGateways.push(before);
      gateways[place] = again;
      return again;
    },
    wayOf: (way, of = 0) => ways.at(way, of),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

type FleetNats = Pick<Fleet, "nats" | "natsConnection" | "natsMonitorUrl"> & { readonly gatewaySettings: Settings };

async function startNats({ tunnels = false, natsConfig = "" }: FleetWish): Promise<FleetNats> {
  if (tunnels) {
    const nats = await startOperatorNats({ extraConfig: natsConfig });
    const { gatewaySettings, connection, monitoringUrl } = nats;
    return { nats, natsConnection: connection, natsMonitorUrl: monitoringUrl, gatewaySettings };
  }
  const port = foundServers().nats.by === "binary" ? await freePort() : undefined;
  const monitor = port === undefined ? "" : `http: "127.0.0.1:${port}"`;
  const nats = await startNatsServer({ extraConfig: [monitor, natsConfig].join("\n") });
  const natsMonitorUrl = port === undefined ? undefined : `http://127.0.0.1:${port}`;
  return { nats, natsConnection: { url: nats.url }, natsMonitorUrl, gatewaySettings: {} };
}

/** Makes a folder for the pairings of machines, which outlast their processes. */
async function folderOf(parts: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-fleet-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** One that may use every model. */
async function keyBy(operator: Operator): Promise<string> {
  // While many processes start, Redis may answer later than a store waits for it.
  const { token } = await until(() => operator.issue(), { what: "a key to be issued", timeoutMs: knownWithinMs });
  return token.reveal();
}

/** The proxies of a fleet, one for each process that has its way through them. */
class Ways {
  readonly #proxied: readonly Way[];
  readonly #parts: AsyncDisposableStack;
  readonly #proxies = new Map<string, TcpProxy>();

  constructor(proxied: readonly Way[], parts: AsyncDisposableStack) {
    this.#proxied = proxied;
    this.#parts = parts;
  }

  at(way: Way, of: string | number): TcpProxy {
    const proxy = this.#proxies.get(`${way} ${of}`);
    if (proxy === undefined) throw new Error(`no proxy stands on the way ${way} of ${of}`);
    return proxy;
  }

  /** The URL under which a process of ours reaches this one: the proxy's, where one stands. */
  async through(way: Way, of: string | number, url: string, wire?: WireWatch): Promise<string> {
    if (!this.#proxied.includes(way)) return url;
    const name = `${way} ${of}`;
    const proxy = this.#proxies.get(name) ?? this.#parts.use(await TcpProxy.before(url, wire?.inspect));
    this.#proxies.set(name, proxy);
    return url.replace(/^(\w+:\/\/)[^/]+/, `$1127.0.0.1:${proxy.port}`);
  }
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
