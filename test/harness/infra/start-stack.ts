import { z } from "zod";
import { Endpoint } from "../endpoint.ts";
import { FakeOllama } from "../fake-ollama.ts";
import { startGateway, type GatewayProcess } from "../start-trunkline.ts";
import { issueKey, trunkline, type Settings } from "../trunkline-command.ts";
import { TrunklineProcess } from "../trunkline-process.ts";
import { until } from "../until.ts";
import { filledEnvironment, readCompose } from "./compose-file.ts";
import { startConfiguredRedis } from "./configured-servers.ts";
import { startOperatorNats } from "./operator-nats.ts";

export interface Stack extends AsyncDisposable {
  readonly ollama: FakeOllama;
  readonly gateways: readonly GatewayProcess[];
  readonly agent: TrunklineProcess;
  /** One for each gateway, all with one key. */
  readonly endpoints: readonly Endpoint[];
}

const listedWithinMs = 10_000;
export const model = "llama3.2";

/**
 * The processes of compose.yaml without containers: NATS and Redis with their files, each gateway and the agent with
 * its settings from there, in which only host names and NATS' files are replaced by those here; and a fake Ollama.
 */
export async function startStack(): Promise<Stack> {
  const parts = new AsyncDisposableStack();
  try {
    return await build(parts);
  } catch (error) {
    await parts.disposeAsync();
    throw error;
  }
}

async function build(parts: AsyncDisposableStack): Promise<Stack> {
  const environment = filledEnvironment();
  const { services } = readCompose(environment);
  const nats = parts.use(await startOperatorNats());
  const redis = parts.use(await startConfiguredRedis(environment));
  const ollama = parts.use(await FakeOllama.start());

  const settingsOf = (name: string): Settings => {
    const entries = Object.entries(services[name]?.environment ?? {}).map(([variable, value]) => {
      const here = value
        .replace("nats:4222", new URL(nats.url).host)
        .replace("redis:6379", new URL(redis.url).host)
        .replace("/etc/trunkline/nats-ca.pem", nats.certificates.caFile)
        .replace(/^\/etc\/trunkline\/nats\/(?=[\w.]+$)/, `${nats.folder}/`);
      return [variable, here] as const;
    });
    return { ...Object.fromEntries(entries), TRUNKLINE_PORT: "0" };
  };
  const gatewayNames = Object.keys(services).filter((name) => services[name]?.command?.[0] === "gateway");
  const start = (name: string): Promise<GatewayProcess> => {
    // In compose.yaml each gateway has a host of its own, and so the same port.
    const env = { ...settingsOf(name), TRUNKLINE_PORT: "0" };
    return startGateway({ natsUrl: nats.url, redisUrl: redis.url, env });
  };
  const { key } = await issueKey(settingsOf("gateway-1"));
  const gateways = await Promise.all(gatewayNames.map(async (name) => parts.use(await start(name))));
  const origin = new URL(gateways[0]?.baseUrl ?? "").origin;
  const operator = { ...settingsOf("gateway-1"), TRUNKLINE_PUBLIC_URL: origin };
  const { stdout } = await trunkline(["machines", "pair", "attic", "--json"], operator);
  const { join } = z.looseObject({ join: z.string() }).parse(JSON.parse(stdout));
  const settings = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url };
  const agent = parts.use(await TrunklineProcess.start({ args: ["agent", "--join", join], settings }));
  await agent.logged("agent ready");

  const endpoints = gateways.map(({ baseUrl }) => new Endpoint({ baseUrl, key }));
  for (const endpoint of endpoints) {
    const listed = async (): Promise<boolean> => (await endpoint.models()).ids.includes(model);
    await until(listed, { what: `a gateway to list ${model}`, timeoutMs: listedWithinMs });
  }
  return { ollama, gateways, agent, endpoints, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}
