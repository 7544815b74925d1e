import { MetricsText } from "../../harness/metrics-text.ts";
import { findBinary } from "../../harness/find-binary.ts";
import { freePort } from "../../harness/free-port.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import { Operator } from "../../harness/operator.ts";
import { OwnedChild } from "../../harness/owned-child.ts";
import { startRedisServer } from "../../harness/redis-server.ts";
import { type AgentProcess, startAgent, startGateway } from "../../harness/start-trunkline.ts";
import { until } from "../../harness/until.ts";
import { ownServers, ownServersMissing } from "../variants/own-servers.ts";
import { bareEnvironment, pathProcess, type PathProcess } from "../variants/variant.ts";
import { type Reference, references } from "./references.ts";
import type { Engines } from "./start-engines.ts";
import type { Change } from "./workloads.ts";

/** A router in front of the engines, ready for its first request. */
export interface RunningRouter extends AsyncDisposable {
  /** Requests go to these in turn. */
  readonly baseUrls: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly processes: readonly PathProcess[];
  change(change: Change): Promise<void>;
}

export interface Router {
  readonly name: string;
  readonly title: string;
  missing(): Promise<string | undefined>;
  /** Starts with these engines; the others join later. */
  start(engines: Engines, present: readonly number[]): Promise<RunningRouter>;
}

const knownMs = 60_000;
const keyTtlMs = 86_400_000;

export const routers: readonly Router[] = [
  ...(Object.keys(references) as Reference[]).map(reference),
  trunkline(1),
  trunkline(2),
  trunkline(4),
  smg(),
];

function reference(name: Reference): Router {
  return {
    name,
    title: references[name],
    missing: async () => undefined,
    start: async (engines, present) => {
      const members = new Set(present);
      await engines.setMembers([...members]);
      return {
        baseUrls: [engines.referenceUrl(name)],
        headers: {},
        processes: [],
        change: async ({ machine, change }) => {
          if (change === "joins") members.add(machine);
          else members.delete(machine);
          await engines.setMembers([...members]);
        },
        [Symbol.asyncDispose]: async () => {},
      };
    },
  };
}

/** Real gateways, NATS and Redis, and an agent for each engine. Requests go to the gateways in turn. */
function trunkline(gatewayCount: number): Router {
  return {
    name: `trunkline-${gatewayCount}`,
    title: `Trunkline with ${gatewayCount} gateway${gatewayCount > 1 ? "s" : ""}, NATS, Redis and an agent for each engine`,
    missing: ownServersMissing,
    start: async (engines, present) => {
      await using parts = new AsyncDisposableStack();
      const found = await ownServers();
      const nats = parts.use(await startNatsServer({ found: found.nats }));
      const redis = parts.use(await startRedisServer({ found: found.redis }));
      const urls = { natsUrl: nats.url, redisUrl: redis.url };
      await using operator = await Operator.on(urls);
      const { token } = await operator.issue({ name: "bench", scopes: ["*"], ttlMs: keyTtlMs });
      const gateways = await Promise.all(Array.from({ length: gatewayCount }, () => startGateway(urls)));
      for (const gateway of gateways) parts.use(gateway);
      const agents = new Map<number, AgentProcess>();
      parts.defer(
        async () => void (await Promise.all([...agents.values()].map((agent) => agent[Symbol.asyncDispose]()))),
      );
      const join = async (machine: number): Promise<void> => {
        const runtime = { TRUNKLINE_RUNTIME: "vllm", TRUNKLINE_RUNTIME_URL: engines.urls[machine] ?? "" };
        const env = { ...runtime, TRUNKLINE_SLOTS: `${engines.specs[machine]?.slots}` };
        agents.set(machine, await startAgent({ ...urls, machine: `machine-${machine}`, env }));
      };
      await Promise.all(present.map(join));
      for (const { operationsUrl } of gateways) {
        const areKnown = async (): Promise<boolean> => {
          const metrics = await MetricsText.scrape(operationsUrl);
          return metrics.value("trunkline_machines", { state: "ready" }) === present.length;
        };
        await until(areKnown, { what: "a gateway to know all machines", timeoutMs: knownMs });
      }
      const processes = [
        pathProcess("nats", nats),
        pathProcess("redis", redis),
        ...gateways.map((each) => pathProcess("gateway", each)),
        ...[...agents.values()].map((each) => pathProcess("agent", each)),
      ];
      const running = parts.move();
      return {
        baseUrls: gateways.map(({ baseUrl }) => baseUrl),
        headers: { authorization: `Bearer ${token.reveal()}` },
        processes,
        change: async ({ machine, change }) => {
          if (change === "joins") await join(machine);
          else agents.get(machine)?.askToStop();
        },
        [Symbol.asyncDispose]: () => running.disposeAsync(),
      };
    },
  };
}

/** SMG as its users run it in front of vLLM: its default policy, which is aware of caches. */
function smg(): Router {
  return {
    name: "smg",
    title: "SMG, a router in Rust, with its default policy (PyPI: smg)",
    missing: async () => ((await findBinary("smg")) === undefined ? "smg is not on the PATH" : undefined),
    start: async (engines, present) => {
      const port = await freePort();
      const urls = present.map((place) => engines.urls[place] ?? "");
      const ports = [`--port=${port}`, `--prometheus-port=${await freePort()}`];
      const args = [
        "launch",
        "--host=127.0.0.1",
        ...ports,
        "--backend=vllm",
        "--log-level=error",
        "--worker-urls",
        ...urls,
      ];
      const binary = (await findBinary("smg")) ?? "smg";
      const child = await OwnedChild.start({ binary, args, environment: bareEnvironment() });
      const url = `http://127.0.0.1:${port}`;
      const workers = async (): Promise<readonly SmgWorker[]> => {
        const response = await fetch(`${url}/workers`);
        return ((await response.json()) as { readonly workers: readonly SmgWorker[] }).workers;
      };
      const areReady = async (): Promise<boolean> => {
        if (child.ended) throw new Error(`smg ended: ${await child.stderr()}`);
        const ready = await workers().catch(() => []);
        return ready.filter(({ is_healthy: isHealthy }) => isHealthy).length === present.length;
      };
      await until(areReady, { what: "SMG to know all engines", timeoutMs: knownMs });
      return {
        baseUrls: [`${url}/v1`],
        headers: {},
        processes: [pathProcess("smg", child)],
        change: async ({ machine, change }) => {
          const worker = engines.urls[machine];
          const id = (await workers()).find((each) => each.url === worker)?.id;
          const headers = { "content-type": "application/json" };
          await (change === "joins"
            ? fetch(`${url}/workers`, { method: "POST", headers, body: JSON.stringify({ url: worker }) })
            : fetch(`${url}/workers/${id}`, { method: "DELETE" }));
        },
        [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
      };
    },
  };
}

interface SmgWorker {
  readonly id: string;
  readonly url: string;
  readonly is_healthy: boolean;
}
