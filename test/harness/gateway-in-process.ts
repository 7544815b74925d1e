import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Broker } from "#shared/broker/broker.ts";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { issueKey, type NewKey } from "#shared/records/issue-key.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { Fault } from "#shared/fault/fault.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { systemClock, type Clock } from "#shared/process/clock.ts";
import { Lifecycle, exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import type { LogLevel } from "#shared/process/config.ts";
import { decodeFrame } from "#shared/protocol/frame.ts";
import { startAgent } from "../../services/agent/compose.ts";
import { agentConfig } from "../../services/agent/config.ts";
import { startGateway } from "../../services/gateway/compose.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { Endpoint } from "./endpoint.ts";
import { until } from "./until.ts";
import { testPepper, type Settings } from "./trunkline-command.ts";

/** Resolves when a machine has told a gateway what it offers: a busy machine of ours may take longer than a start waits. */
async function machineKnown(broker: Broker): Promise<void> {
  let told = false;
  broker.subscribe("tl1.reply.>", ({ data }) => {
    const decoded = decodeFrame(data);
    told ||= decoded.outcome === "frame" && decoded.frame.kind === "end";
  });
  await until(() => told, { what: "the gateway to know its machine", timeoutMs: 10_000 });
  await broker.close();
}

/**
 * A gateway and a machine with the demonstration in this very process, for what cannot be seen from outside: how often
 * a store is asked, and what is logged.
 */
export interface GatewayInProcess extends AsyncDisposable {
  readonly baseUrl: string;
  readonly operationsUrl: string;
  readonly store: OpenedKeyStore;
  /** All that was logged so far. */
  readonly logged: readonly string[];
  /** Stops it, with so much time for what is under way. */
  stop(drainMs: number): Promise<void>;
  /** A new key, and the endpoint for whoever has it. */
  issue(terms?: Partial<NewKey>): Promise<{ readonly record: KeyRecord; readonly endpoint: Endpoint }>;
}

interface GatewayOptions {
  readonly redisUrl?: string;
  readonly stateDir?: string;
  readonly logLevel?: LogLevel;
  readonly env?: Settings;
  /** The clock of the host that it believes to be on. */
  readonly clock?: Clock;
}

const startsMax = 5;

/** Starts again, as a supervisor would, when Redis on a busy machine is later than a start waits for it. */
export async function startGatewayInProcess(options: GatewayOptions = {}): Promise<GatewayInProcess> {
  for (let started = 1; ; started += 1) {
    try {
      return await startOnce(options);
    } catch (error) {
      if (started === startsMax || !isUnavailable(error)) throw error;
    }
  }
}

function isUnavailable(error: unknown): boolean {
  if (error instanceof Fault) return error.code === "backend_unavailable";
  return error instanceof StartFailure && error.exitCode === exitCodes.unavailable;
}

async function startOnce(options: GatewayOptions): Promise<GatewayInProcess> {
  const { redisUrl, logLevel = "silent", env, clock = systemClock } = options;
  const stateDir = options.stateDir ?? (await mkdtemp(join(tmpdir(), "trunkline-gateway-")));
  const redis = redisUrl === undefined ? {} : { TRUNKLINE_REDIS_URL: redisUrl };
  const settings = {
    TRUNKLINE_PORT: "0",
    TRUNKLINE_OPERATIONS_PORT: "0",
    TRUNKLINE_GRACE_MS: "0",
    TRUNKLINE_RUNTIME: "scripted",
    TRUNKLINE_KEY_PEPPER: testPepper,
    TRUNKLINE_STATE_DIR: stateDir,
    ...redis,
    ...env,
  };
  const logged: string[] = [];
  const log = createLog({ level: logLevel, name: "test", write: (line) => void logged.push(line) });
  const config = gatewayConfig(settings);
  const lifecycle = new Lifecycle({ clock, log });
  const store = await openKeyStore(config, { clock, log });
  lifecycle.onStop("keys", () => store.keys.close());
  const broker = new MemoryBroker({ clock, log });
  await startAgent({
    config: agentConfig(settings),
    broker: broker.connect(),
    alone: true,
    lifecycle,
    clock,
    log,
    fallbackToScripted: true,
    exit: () => undefined,
  });
  const known = machineKnown(broker.connect());
  const brokerFor = async (): Promise<Broker> => broker.connect();
  const starting = startGateway({ config, broker: broker.connect(), brokerFor, store, lifecycle, clock, log });
  const [running] = await Promise.all([starting, known]).catch(async (error: unknown) => {
    await lifecycle.stop(0);
    throw error;
  });
  return {
    ...running,
    store,
    logged,
    stop: (drainMs) => lifecycle.stop(drainMs),
    async issue(terms = {}) {
      const { keys, peppers } = store;
      const key = { name: "test", scopes: ["*"], ttlMs: 3_600_000, ...terms };
      const { token, record } = await issueKey(key, { keys, peppers, clock, actor: { by: "test" } });
      return { record, endpoint: new Endpoint({ baseUrl: running.baseUrl, key: token.reveal() }) };
    },
    async [Symbol.asyncDispose]() {
      await lifecycle.stop(1_000);
      if (options.stateDir === undefined) await rm(stateDir, { recursive: true, force: true });
    },
  };
}
