import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { KeyLimits } from "#shared/keys/key-limits.ts";
import manifest from "../../../package.json" with { type: "json" };
import { startNatsServer } from "../../harness/nats-server.ts";
import { startRedisServer } from "../../harness/redis-server.ts";
import { startAgent, startGateway } from "../../harness/start-trunkline.ts";
import type { Settings } from "../../harness/trunkline-command.ts";
import { untilAnswers } from "./first-answer.ts";
import { issueKeys, neverReached } from "./issue-keys.ts";
import { ownServers, ownServersMissing } from "./own-servers.ts";
import { numbered, pathProcess } from "./path-process.ts";
import { runningParts } from "./running-parts.ts";
import type { Switchable } from "./switched-off/features.ts";
import { untilMachines } from "./until-machines.ts";
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
  /** How many keys are issued that nobody asks with at first. */
  readonly freshKeys?: number;
  readonly gatewayEnv?: Settings;
  readonly agentEnv?: Settings;
  readonly switchedOff?: Switchable;
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

/** Processes as operators start them, with everything on: keys, scopes, limits, usage, metrics, and the log in a file. */
export function trunkline(wish: TrunklineWish = {}): TrunklineVariant {
  const { name = "trunkline", title = "Trunkline whole, with keys, limits, usage, metrics and log" } = wish;
  return {
    name,
    title,
    onlyWhenNamed: wish.switchedOff !== undefined,
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
    freshKeys = 0,
    gatewayEnv,
    agentEnv,
    switchedOff,
  }: TrunklineWish,
  { means, parts }: { means: StartMeans; parts: AsyncDisposableStack },
) {
  const found = await ownServers();
  const [nats, redis] = await Promise.all([
    startNatsServer({ found: found.nats }).then((server) => parts.use(server)),
    startRedisServer({ found: found.redis }).then((server) => parts.use(server)),
  ]);
  const [natsUrl, redisUrl] = [nats.url, redis.url];
  const [key = "", ...others] = await issueKeys(redisUrl, { limits, count: 1 + freshKeys });
  const ofAll = switchedOff === undefined ? {} : { NODE_OPTIONS: `--import=${switchUrl(switchedOff)}` };
  const ofAgents = {
    ...ofAll,
    TRUNKLINE_RUNTIME: "openai",
    TRUNKLINE_RUNTIME_URL: `http://127.0.0.1:${means.farEndPort}`,
    TRUNKLINE_SLOTS: String(slots),
    TRUNKLINE_QUEUE_MAX: String(queueMax),
    ...agentEnv,
  };
  const [gatewaysUp, agentsUp] = await Promise.all([
    times(gateways, async () => parts.use(await startGateway({ natsUrl, redisUrl, env: { ...ofAll, ...gatewayEnv } }))),
    times(agents, async (place) => parts.use(await startAgent({ natsUrl, machine: `bench-${place}`, env: ofAgents }))),
  ]);
  const headers = { authorization: `Bearer ${key}` };
  const ports = gatewaysUp.map(({ baseUrl }) => Number(new URL(baseUrl).port));
  const operationsUrls = gatewaysUp.map(({ operationsUrl }) => operationsUrl);
  for (const url of operationsUrls) await untilMachines(url, agents);
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
  return { ports, headers, freshKeys: others, processes, natsUrl, redisUrl, operationsUrls };
}

function switchUrl(feature: Switchable): string {
  return pathToFileURL(join(import.meta.dirname, "switched-off", `${feature}.ts`)).href;
}

async function commit(): Promise<string> {
  const options = { cwd: import.meta.dirname };
  const asked = promisify(execFile)("git", ["describe", "--always", "--dirty", "--exclude=*"], options);
  return asked.then(
    ({ stdout }) => stdout.trim(),
    () => "an unknown commit",
  );
}

function times<Each>(count: number, start: (place: number) => Promise<Each>): Promise<readonly Each[]> {
  return Promise.all(Array.from({ length: count }, (_, place) => start(place)));
}
