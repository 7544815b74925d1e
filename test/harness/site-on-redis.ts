import type { IssuedKey, NewKey } from "#shared/records/issue-key.ts";
import { keysCommand } from "../../services/cli/commands/keys.ts";
import type { LogLevel } from "#shared/process/config.ts";
import { Endpoint } from "./endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "./gateway-in-process.ts";
import { Operator } from "./operator.ts";
import type { OwnServer } from "./own-server.ts";
import { startRedisServer } from "./redis-server.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { testPepper, type Settings } from "./trunkline-command.ts";
import { commandHere } from "./trunkline-here.ts";
import { until } from "./until.ts";

/** A key, and the gateway at which it is used. */
export type KeyInUse = IssuedKey & { readonly endpoint: Endpoint };

/** A Redis of one's own that keeps what it was told, a gateway on it, and an operator whose way to it is another. */
export class SiteOnRedis implements AsyncDisposable {
  readonly redis: OwnServer;
  /** Between the gateway and Redis. */
  readonly network: TcpProxy;
  readonly gateway: GatewayInProcess;
  readonly operator: Operator;
  readonly #parts: AsyncDisposableStack;

  private constructor(
    parts: Pick<SiteOnRedis, "redis" | "network" | "gateway" | "operator">,
    stack: AsyncDisposableStack,
  ) {
    this.redis = parts.redis;
    this.network = parts.network;
    this.gateway = parts.gateway;
    this.operator = parts.operator;
    this.#parts = stack;
  }

  static async start(options: { readonly env?: Settings; readonly logLevel?: LogLevel } = {}): Promise<SiteOnRedis> {
    const stack = new AsyncDisposableStack();
    try {
      const redis = stack.use(await startRedisServer({ persistent: true }));
      const network = stack.use(await TcpProxy.before(redis.url));
      const operator = stack.use(await Operator.on({ redisUrl: redis.url }));
      const redisUrl = `redis://127.0.0.1:${network.port}`;
      const gateway = stack.use(await startGatewayInProcess({ redisUrl, ...options }));
      return new SiteOnRedis({ redis, network, gateway, operator }, stack);
    } catch (error) {
      await stack.disposeAsync();
      throw error;
    }
  }

  /** A key that the gateway has never seen. */
  async unknownKey(terms?: Partial<NewKey>): Promise<KeyInUse> {
    const issued = await this.operator.issue(terms);
    return { ...issued, endpoint: new Endpoint({ baseUrl: this.gateway.baseUrl, key: issued.token.reveal() }) };
  }

  /** The admin API of the gateway, with a new admin key. */
  async admin(): Promise<Endpoint> {
    return (await this.unknownKey({ kind: "admin" })).endpoint.at(`${this.gateway.operationsUrl}/admin/v1`);
  }

  /** Runs `trunkline keys <args>` in this process, on the store itself. */
  keys(...args: string[]): Promise<{ readonly out: string; readonly err: string }> {
    const environment = { TRUNKLINE_REDIS_URL: this.redis.url, TRUNKLINE_KEY_PEPPER: testPepper };
    return commandHere(keysCommand, args, { environment });
  }

  /** A key that the gateway knows, and has nothing more to hear of. */
  async knownKey(terms?: Partial<NewKey>): Promise<KeyInUse> {
    const key = await this.unknownKey(terms);
    await this.untilAllIsHeard();
    const served = async (): Promise<boolean> => (await key.endpoint.models()).status === 200;
    await until(served, { what: "the gateway to serve a new key" });
    return key;
  }

  /** Changes are heard in order: once the last of them has its effect, all were. */
  async untilAllIsHeard(): Promise<void> {
    const { endpoint, token } = await this.unknownKey();
    // A key that is looked up only after its revocation would prove nothing.
    await endpoint.judged();
    await this.operator.change(token.id, { action: "revoked" });
    const refused = async (): Promise<boolean> => (await endpoint.models()).status === 401;
    await until(refused, { what: "the gateway to hear of all changes" });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.disposeAsync();
  }
}
