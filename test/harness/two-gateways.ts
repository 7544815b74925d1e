import type { IssuedKey, NewKey } from "#shared/records/issue-key.ts";
import { Endpoint } from "./endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "./gateway-in-process.ts";
import { redisUrl } from "./redis-server.ts";
import { Operator } from "./operator.ts";

/** Two gateways in this process that have nothing in common but one Redis, each with a machine of its own. */
export interface TwoGateways extends AsyncDisposable {
  readonly gateways: readonly [GatewayInProcess, GatewayInProcess];
  readonly operator: Operator;
  /** A new key, and an endpoint for it at each of the gateways. */
  issue(terms?: Partial<NewKey>): Promise<IssuedKey & { readonly endpoints: readonly [Endpoint, Endpoint] }>;
}

export async function startTwoGateways(): Promise<TwoGateways> {
  const parts = new AsyncDisposableStack();
  try {
    const redis = parts.use(await redisUrl());
    const operator = parts.use(await Operator.on({ redisUrl: redis.url }));
    const here = parts.use(await startGatewayInProcess({ redisUrl: redis.url }));
    const there = parts.use(await startGatewayInProcess({ redisUrl: redis.url }));
    return {
      gateways: [here, there],
      operator,
      async issue(terms) {
        const issued = await operator.issue(terms);
        const key = issued.token.reveal();
        const at = ({ baseUrl }: GatewayInProcess): Endpoint => new Endpoint({ baseUrl, key });
        return { ...issued, endpoints: [at(here), at(there)] };
      },
      [Symbol.asyncDispose]: () => parts.disposeAsync(),
    };
  } catch (error) {
    await parts.disposeAsync();
    throw error;
  }
}
