import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { KeyLimits } from "#shared/keys/key-limits.ts";
import manifest from "../../../package.json" with { type: "json" };
import { MetricsText } from "../../harness/metrics-text.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import { Operator } from "../../harness/operator.ts";
import { startRedisServer } from "../../harness/redis-server.ts";
import { startAgent, startGateway } from "../../harness/start-trunkline.ts";
import type { Settings } from "../../harness/trunkline-command.ts";
import { until } from "../../harness/until.ts";
import { untilAnswers } from "./first-answer.ts";
import { ownServers, ownServersMissing } from "./own-servers.ts";
import { pathProcess } from "./path-process.ts";
import { runningParts } from "./running-parts.ts";
import type { PathProcess, RunningVariant, StartMeans, Variant } from "./variant.ts";

interface TrunklineWish {
  /** Unless `trunkline`. */
  readonly name?: string;
  readonly title?: string;
  readonly gateways?: number;
  readonly agents?: number;
  /** Of the one key that is asked with; all kinds of limits, none of them ever reached, unless told. */
  readonly limits?: KeyLimits | "off";
  /** Jobs that each agent runs at once, and that wait for it. */
  readonly slots?: number;
  readonly queueMax?: number;
  readonly gatewayEnv?: Settings;
  readonly agentEnv?: Settings;
}

/** What scenarios look at beside requests. */
export interface RunningTrunkline extends RunningVariant {
  readonly natsUrl: string;
  readonly redisUrl: string;
  /** One for each gateway. */
  readonly operationsUrls: readonly string[];
}

interface TrunklineVariant extends Variant {
  start(means: StartMeans): Promise<RunningTrunkline>;
}

/** So high that they are asked at every request and refuse none. */
const neverReached: KeyLimits = {
  requestsPerMinute: 1_000_000,
  tokensPerMinute: 1_000_000_000,
  concurrency: 10_000,
  budget: { tokens: 1_000_000_000_000, per: "day" },
};
const keyTtlMs = 86_400_000;
const knownWithinMs = 15_000;

/** Processes as operators start them, with everything on: keys, scopes, limits, usage, metrics, and the log in a file. */
export function trunkline(wish: TrunklineWish = {}): TrunklineVariant {
  const { name = "trunkline", title = "Trunkline whole, with keys, limits, usage, metrics and log" } = wish;
  return {
    name,
    title,
    async version() {
      const { nats, redis } = await ownServers();
      return `${manifest.version} at ${await commit()}, ${nats.title}, ${redis.title}, Node ${process.version}`;
    },
    missing: ownServersMissing,
    start: (means) => runningParts((parts) => build(wish, { means, parts })),
  };
}

async function build(
  {
    gateways = 1,
    agents = 1,
    limits = neverReached,
    slots = 10_000,
    queueMax = 10_000,
    gatewayEnv,
    agentEnv,
  }: TrunklineWish,
  { means, parts }: { means: StartMeans; parts: AsyncDisposableStack },
) {
  const found = await ownServers();
  const [nats, redis] = await Promise.all([
    startNatsServer({ found: found.nats }).then((server) => parts.use(server)),
    startRedisServer({ found: found.redis }).then((server) => parts.use(server)),
  ]);
  const [natsUrl, redisUrl] = [nats.url, redis.url];
  const key = await issue(redisUrl, limits === "off" ? {} : { limits });
  const ofAgents = {
    TRUNKLINE_RUNTIME: "openai",
    TRUNKLINE_RUNTIME_URL: `http://127.0.0.1:${means.farEndPort}`,
    TRUNKLINE_SLOTS: String(slots),
    TRUNKLINE_QUEUE_MAX: String(queueMax),
    ...agentEnv,
  };
  const [gatewaysUp, agentsUp] = await Promise.all([
    times(gateways, async () => parts.use(await startGateway({ natsUrl, redisUrl, env: { ...gatewayEnv } }))),
    times(agents, async (place) => parts.use(await startAgent({ natsUrl, machine: `bench-${place}`, env: ofAgents }))),
  ]);
  const headers = { authorization: `Bearer ${key}` };
  const ports = gatewaysUp.map(({ baseUrl }) => Number(new URL(baseUrl).port));
  const operationsUrls = gatewaysUp.map(({ operationsUrl }) => operationsUrl);
  for (const url of operationsUrls) await untilReady(url, agents);
  for (const port of ports) {
    await untilAnswers({ port, headers }, async () => {
      const gone = [...gatewaysUp, ...agentsUp].find(({ ended }) => ended);
      return gone === undefined ? undefined : `${gone.title}: ${await gone.stderr()}`;
    });
  }
  const processes: readonly PathProcess[] = [
    ...gatewaysUp.map((gateway, place) => pathProcess(numbered("gateway", place), gateway)),
    pathProcess("nats", nats),
    ...agentsUp.map((agent, place) => pathProcess(numbered("agent", place), agent)),
    pathProcess("redis", redis),
  ];
  return { ports, headers, processes, natsUrl, redisUrl, operationsUrls };
}

async function issue(redisUrl: string, terms: { readonly limits?: KeyLimits }): Promise<string> {
  await using operator = await Operator.on({ redisUrl });
  const { token } = await operator.issue({ name: "bench", scopes: ["*"], ttlMs: keyTtlMs, ...terms });
  return token.reveal();
}

/** A gateway that knows of some machines only would leave the others idle. */
async function untilReady(operationsUrl: string, machines: number): Promise<void> {
  const look = async (): Promise<boolean> => {
    const metrics = await MetricsText.scrape(operationsUrl);
    return metrics.value("trunkline_machines", { state: "ready" }) === machines;
  };
  await until(look, { what: `a gateway to have ${machines} machines`, timeoutMs: knownWithinMs, intervalMs: 20 });
}

async function commit(): Promise<string> {
  const options = { cwd: import.meta.dirname };
  const asked = promisify(execFile)("git", ["describe", "--always", "--dirty", "--exclude=*"], options);
  return asked.then(
    ({ stdout }) => stdout.trim(),
    () => "an unknown commit",
  );
}

function numbered(name: string, place: number): string {
  return place === 0 ? name : `${name} ${place + 1}`;
}

function times<Each>(count: number, start: (place: number) => Promise<Each>): Promise<readonly Each[]> {
  return Promise.all(Array.from({ length: count }, (_, place) => start(place)));
}
