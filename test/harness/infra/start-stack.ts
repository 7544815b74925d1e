import { Endpoint } from "../endpoint.ts";
import { FakeOllama } from "../fake-ollama.ts";
import { startAgent, startGateway, type AgentProcess, type GatewayProcess } from "../start-trunkline.ts";
import { issueKey, type Settings } from "../trunkline-command.ts";
import { until } from "../until.ts";
import { filledEnvironment, readCompose } from "./compose-file.ts";
import { startConfiguredNats, startConfiguredRedis } from "./configured-servers.ts";

export interface Stack extends AsyncDisposable {
  readonly ollama: FakeOllama;
  readonly gateways: readonly GatewayProcess[];
  readonly agent: AgentProcess;
  /** One for each gateway, all with one key. */
  readonly endpoints: readonly Endpoint[];
}

const listedWithinMs = 10_000;
export const model = "llama3.2";

/**
 * The processes of compose.yaml without containers: NATS and Redis with their files, each gateway and the agent with
 * its settings from there, in which only host names and NATS' authority are replaced by those here; and a fake Ollama.
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
  const nats = parts.use(await startConfiguredNats(environment));
  const redis = parts.use(await startConfiguredRedis(environment));
  const ollama = parts.use(await FakeOllama.start());

  const settingsOf = (name: string): Settings => {
    const entries = Object.entries(services[name]?.environment ?? {}).map(([variable, value]) => {
      const here = value
        .replace("nats:4222", new URL(nats.url).host)
        .replace("redis:6379", new URL(redis.url).host)
        .replace("http://ollama:11434", ollama.url)
        .replace("/etc/trunkline/nats-ca.pem", nats.certificates.caFile);
      return [variable, here] as const;
    });
    return Object.fromEntries(entries);
  };
  const gatewayNames = Object.keys(services).filter((name) => services[name]?.command?.[0] === "gateway");
  const start = (name: string): Promise<GatewayProcess> => {
    const env = settingsOf(name);
    return startGateway({ natsUrl: nats.url, redisUrl: redis.url, env });
  };
  const gateways = await Promise.all(gatewayNames.map(async (name) => parts.use(await start(name))));
  const agent = parts.use(await startAgent({ natsUrl: nats.url, machine: "attic", env: settingsOf("agent") }));

  const { key } = await issueKey(settingsOf("gateway-1"));
  const endpoints = gateways.map(({ baseUrl }) => new Endpoint({ baseUrl, key }));
  for (const endpoint of endpoints) {
    const listed = async (): Promise<boolean> => (await endpoint.models()).ids.includes(model);
    await until(listed, { what: `a gateway to list ${model}`, timeoutMs: listedWithinMs });
  }
  return { ollama, gateways, agent, endpoints, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}
