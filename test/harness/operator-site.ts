import { Endpoint } from "./endpoint.ts";
import { type OperatorNats, startOperatorNats } from "./infra/operator-nats.ts";
import { Operator } from "./operator.ts";
import type { OwnServer } from "./own-server.ts";
import { startRedisServer } from "./redis-server.ts";
import { type AgentProcess, type GatewayProcess, startGateway, startPairedAgent } from "./start-trunkline.ts";
import type { Settings } from "./trunkline-command.ts";
import { until } from "./until.ts";

interface SiteWish {
  readonly gateways?: number;
  /** Beside those that every gateway of such a site has. */
  readonly gatewayEnv?: Settings;
  /** The same, where it depends on the broker. */
  readonly gatewayEnvOn?: (nats: OperatorNats) => Settings;
}

/** A site with NATS in operator mode, Redis and several gateways, whose machines connect by tunnels. */
export class OperatorSite implements AsyncDisposable {
  readonly nats: OperatorNats;
  readonly redis: OwnServer;
  readonly operator: Operator;
  readonly gateways: GatewayProcess[];
  readonly key: string;
  readonly #wish: SiteWish;
  readonly #parts: AsyncDisposableStack;

  private constructor(
    site: Pick<OperatorSite, "nats" | "redis" | "operator" | "gateways" | "key">,
    rest: {
      readonly wish: SiteWish;
      readonly parts: AsyncDisposableStack;
    },
  ) {
    ({ nats: this.nats, redis: this.redis, operator: this.operator, gateways: this.gateways, key: this.key } = site);
    this.#wish = rest.wish;
    this.#parts = rest.parts;
  }

  static async start(wish: SiteWish = {}): Promise<OperatorSite> {
    const parts = new AsyncDisposableStack();
    try {
      const [nats, redis] = await Promise.all([startOperatorNats(), startRedisServer()]);
      parts.use(nats);
      parts.use(redis);
      const operator = parts.use(await Operator.on({ redisUrl: redis.url }));
      const { token } = await operator.issue();
      const starting = Array.from({ length: wish.gateways ?? 2 }, () => launchGateway({ nats, redis, wish }));
      const gateways = await Promise.all(starting);
      return new OperatorSite({ nats, redis, operator, gateways, key: token.reveal() }, { wish, parts });
    } catch (error) {
      await parts.disposeAsync();
      throw error;
    }
  }

  /** An endpoint for each gateway. */
  get endpoints(): readonly Endpoint[] {
    return this.gateways.map(({ baseUrl }) => new Endpoint({ baseUrl, key: this.key }));
  }

  /** The URL under which a machine reaches a gateway. */
  originOf(place: number): string {
    return new URL(this.gateways[place]?.baseUrl ?? "").origin;
  }

  /** Makes a join line, as an operator does, for machines that reach the site at this URL. */
  async joinLine(machine: string, origin: string): Promise<string> {
    return this.operator.joinLine(machine, origin);
  }

  /** Pairs a new machine at a gateway and resolves when its agent is ready. */
  async startMachine(
    machine: string,
    { origin = this.originOf(0), models, env }: { origin?: string; models?: readonly string[]; env?: Settings } = {},
  ): Promise<AgentProcess> {
    const line = await this.joinLine(machine, origin);
    return this.#parts.use(await startPairedAgent({ line, machine, models, env }));
  }

  /** Puts a new gateway in the place of one whose process has ended, on the same port. */
  async restartGateway(place: number): Promise<GatewayProcess> {
    const port = new URL(this.originOf(place)).port;
    const { nats, redis } = this;
    const gateway = await launchGateway({ nats, redis, wish: this.#wish, port });
    this.gateways[place] = gateway;
    return gateway;
  }

  /** Waits until every gateway lists these models. */
  async untilListed(...models: readonly string[]): Promise<void> {
    for (const endpoint of this.endpoints) {
      const listed = async (): Promise<boolean> => {
        const { ids } = await endpoint.models();
        return models.every((model) => ids.includes(model));
      };
      await until(listed, { what: `a gateway to list ${models.join(", ")}`, timeoutMs: 10_000 });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.gateways.map((gateway) => gateway[Symbol.asyncDispose]()));
    await this.#parts.disposeAsync();
  }
}

function launchGateway({
  nats,
  redis,
  wish,
  port = "0",
}: {
  readonly nats: OperatorNats;
  readonly redis: OwnServer;
  readonly wish: SiteWish;
  readonly port?: string;
}): Promise<GatewayProcess> {
  const env = { ...nats.gatewaySettings, TRUNKLINE_PORT: port, ...wish.gatewayEnv, ...wish.gatewayEnvOn?.(nats) };
  return startGateway({ natsUrl: nats.connection.url, redisUrl: redis.url, env });
}
