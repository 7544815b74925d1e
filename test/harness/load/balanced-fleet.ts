import { join } from "node:path";
import { Balancer } from "../balancer.ts";
import { Endpoint } from "../endpoint.ts";
import type { FoundServers } from "../found-servers.ts";
import { startNatsServer } from "../nats-server.ts";
import type { OwnServer } from "../own-server.ts";
import { startRedisServer } from "../redis-server.ts";
import { startAgent, startGateway, type AgentProcess, type GatewayProcess } from "../start-trunkline.ts";
import { issueKey, testPepper, type Settings } from "../trunkline-command.ts";
import { untilProved } from "../until-proved.ts";
import { until } from "../until.ts";
import { Load } from "./load.ts";
import type { ScriptedWish } from "./scripted-chat.ts";

interface FleetWish {
  readonly gateways: number;
  /** By their names, each with the models that it offers: of the demonstration, unless `agentEnv` names another runtime. */
  readonly machines: Readonly<Record<string, readonly string[]>>;
  readonly agentEnv?: Settings;
  /** A folder in which each machine has its state, which then outlasts its processes. */
  readonly stateDir?: string;
  readonly gatewayEnv?: Settings;
  /** Where the processes find NATS, if that is not where it runs: a proxy, or a cluster. */
  readonly natsUrl?: (process: { readonly kind: "gateway" | "agent"; readonly name: string }) => string | undefined;
  /** Outside of vitest, where nothing was provided. */
  readonly found?: FoundServers;
  readonly nats?: OwnServer;
  readonly redis?: OwnServer;
}

const knownWithinMs = 15_000;

/**
 * A fleet as an operator runs one: several gateways behind a balancer and several machines, all as processes. Each can be
 * replaced by a new process, and has a name under which it stays the same.
 */
export class BalancedFleet implements AsyncDisposable {
  readonly nats: OwnServer;
  readonly redis: OwnServer;
  readonly balancer: Balancer;
  readonly key: string;
  /** At the balancer. */
  readonly endpoint: Endpoint;
  readonly #wish: FleetWish;
  readonly #parts: AsyncDisposableStack;
  readonly #gateways: GatewayProcess[];
  readonly #agents = new Map<string, AgentProcess>();

  private constructor(made: {
    readonly wish: FleetWish;
    readonly parts: AsyncDisposableStack;
    readonly nats: OwnServer;
    readonly redis: OwnServer;
    readonly balancer: Balancer;
    readonly key: string;
    readonly gateways: GatewayProcess[];
    readonly agents: readonly AgentProcess[];
  }) {
    this.#wish = made.wish;
    this.#parts = made.parts;
    this.nats = made.nats;
    this.redis = made.redis;
    this.balancer = made.balancer;
    this.key = made.key;
    this.endpoint = new Endpoint({ baseUrl: made.balancer.baseUrl, key: made.key });
    this.#gateways = made.gateways;
    for (const agent of made.agents) this.#agents.set(agent.machine, agent);
  }

  static async start(wish: FleetWish): Promise<BalancedFleet> {
    const parts = new AsyncDisposableStack();
    try {
      const { found } = wish;
      const [nats, redis] = await Promise.all([
        wish.nats ?? startNatsServer({ ...(found && { found: found.nats }) }).then((server) => parts.use(server)),
        wish.redis ?? startRedisServer({ ...(found && { found: found.redis }) }).then((server) => parts.use(server)),
      ]);
      const gatewayNames = Array.from({ length: wish.gateways }, (_, index) => `gateway-${index}`);
      const [{ key }, gateways, agents] = await Promise.all([
        issueKey({ TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_KEY_PEPPER: testPepper }),
        Promise.all(gatewayNames.map((name) => launchGateway({ wish, nats, redis, name }))),
        Promise.all(Object.keys(wish.machines).map((name) => launchAgent({ wish, nats, name }))),
      ]);
      const balancer = parts.use(await Balancer.before(gateways));
      const fleet = new BalancedFleet({ wish, parts, nats, redis, balancer, key, gateways, agents });
      await fleet.untilComplete();
      return fleet;
    } catch (error) {
      await parts.disposeAsync();
      throw error;
    }
  }

  get gateways(): readonly GatewayProcess[] {
    return this.#gateways;
  }

  get machines(): readonly string[] {
    return Object.keys(this.#wish.machines);
  }

  agent(machine: string): AgentProcess {
    const agent = this.#agents.get(machine);
    if (agent === undefined) throw new Error(`this fleet has no machine ${machine}`);
    return agent;
  }

  /** Clients that ask through the balancer, unless they are told where else, with the fleet's key or one of their own. */
  load(
    of: Omit<ConstructorParameters<typeof Load>[0], "baseUrl" | "key"> & {
      readonly baseUrl?: string;
      readonly key?: string;
    },
  ): Load {
    return new Load({ baseUrl: this.balancer.baseUrl, key: this.key, ...of });
  }

  /** Starts the machine again whose process has ended, and resolves when every gateway has it. */
  async startAgent(machine: string): Promise<AgentProcess> {
    await this.agent(machine)[Symbol.asyncDispose]();
    const agent = await launchAgent({ wish: this.#wish, nats: this.nats, name: machine });
    this.#agents.set(machine, agent);
    return agent;
  }

  /** Puts a new gateway in the place of one whose process has ended, and resolves when the balancer uses it. */
  async startGateway(index: number): Promise<GatewayProcess> {
    const before = this.#gateways[index];
    if (before === undefined) throw new Error(`this fleet has no gateway ${index}`);
    this.balancer.remove(before);
    await before[Symbol.asyncDispose]();
    const name = `gateway-${index}`;
    const gateway = await launchGateway({ wish: this.#wish, nats: this.nats, redis: this.redis, name });
    this.#gateways[index] = gateway;
    await this.balancer.add(gateway);
    return gateway;
  }

  /** Until every gateway serves every model on each of the machines. */
  async untilComplete(): Promise<void> {
    const models = [...new Set(Object.values(this.#wish.machines).flat())];
    for (const { baseUrl } of this.#gateways) {
      const complete = async (): Promise<boolean> => {
        const answer = await fetch(`${baseUrl}/models`, { headers: { authorization: `Bearer ${this.key}` } });
        const text = await answer.text();
        return answer.headers.get("x-trunkline-unanswered") === null && models.every((id) => text.includes(`"${id}"`));
      };
      await until(complete, { what: `${baseUrl} to list ${models.join(", ")}`, timeoutMs: knownWithinMs });
    }
  }

  /** Until every gateway knows that another machine may go on with the answers of each model. */
  async untilProved(): Promise<void> {
    const { redis, gateways } = this;
    await untilProved({ redis, gateways, offers: Object.values(this.#wish.machines).flat().length });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const processes = [...this.#gateways, ...this.#agents.values()];
    await Promise.all(processes.map((each) => each[Symbol.asyncDispose]()));
    await this.#parts.disposeAsync();
  }
}

/** What most clients do: streams and whole answers of mixed sizes, none of which is long. */
export function ordinaryChats(index: number): ScriptedWish {
  const tokens = 20 + ((index * 7) % 41);
  return { tokens, delayMs: index % 3, streamed: index % 4 !== 3, paddingCharacters: index % 10 === 9 ? 4_000 : 0 };
}

interface Launch {
  readonly wish: FleetWish;
  readonly nats: OwnServer;
  readonly name: string;
}

function launchGateway({ wish, nats, redis, name }: Launch & { readonly redis: OwnServer }): Promise<GatewayProcess> {
  const natsUrl = wish.natsUrl?.({ kind: "gateway", name }) ?? nats.url;
  return startGateway({ natsUrl, redisUrl: redis.url, ...(wish.gatewayEnv && { env: wish.gatewayEnv }) });
}

function launchAgent({ wish, nats, name }: Launch): Promise<AgentProcess> {
  const natsUrl = wish.natsUrl?.({ kind: "agent", name }) ?? nats.url;
  const isDemonstration = wish.agentEnv?.["TRUNKLINE_RUNTIME"] === undefined;
  const models = isDemonstration ? { models: wish.machines[name] ?? [] } : {};
  const state = wish.stateDir === undefined ? {} : { TRUNKLINE_STATE_DIR: join(wish.stateDir, name) };
  return startAgent({ natsUrl, machine: name, ...models, env: { ...state, ...wish.agentEnv } });
}
