import { resolve } from "node:path";
import type { Broker } from "#shared/broker/broker.ts";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import { openKeyStore } from "#shared/keys/open-key-store.ts";
import type { Model } from "#shared/model/model.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { type Environment, readBoth } from "#shared/process/config.ts";
import { runUntilStopped } from "#shared/process/lifecycle.ts";
import { createLog, type Log } from "#shared/process/log.ts";
import { startAgent } from "../agent/compose.ts";
import { agentConfig } from "../agent/config.ts";
import { startGateway } from "../gateway/compose.ts";
import { gatewayConfig, type GatewayConfig } from "../gateway/config.ts";
import { keepAdminKey, ownKey, ownKeyFile } from "./own-key.ts";
import { type GgufGiven, withGguf } from "./start-commands.ts";
import { onOneLine } from "./table-text.ts";

export interface UpSurroundings {
  readonly environment: Environment;
  readonly stdout: { write(text: string): unknown };
}

export interface UpGiven extends GgufGiven {
  readonly json?: true;
  readonly hideKey?: true;
}

/** Runs gateway and agent in one process until they are stopped. */
export async function runUp(surroundings: UpSurroundings, { json, hideKey, ...given }: UpGiven): Promise<void> {
  const { stdout } = surroundings;
  // A person reads this terminal, so the log shows only warnings and errors unless configured otherwise.
  const named = withGguf(withoutEmpty(surroundings.environment), given);
  // There is no balancer before this process that must learn of a stop first, so the grace period is 0.
  const environment = { TRUNKLINE_LOG_LEVEL: "warn", TRUNKLINE_GRACE_MS: "0", ...named };
  const [forGateway, forAgent] = readBoth(
    () => gatewayConfig(environment),
    () => agentConfig(environment),
  );
  const log = createLog({ level: forGateway.logLevel, name: "trunkline" });
  await runUntilStopped({
    environment,
    drainMs: forGateway.drainMs,
    log,
    onStopping: () => {
      if (!json) stdout.write("\nFinishing what is under way; Ctrl-C again stops at once.\n");
    },
    async start(lifecycle) {
      const store = await openKeyStore(forGateway.keyStore, { clock, log });
      lifecycle.onStop("keys", () => store.keys.close());
      const [gatewaySide, agentSide] = await connectBoth(forGateway, log);
      lifecycle.onStop("broker", async () => {
        await Promise.all([gatewaySide.close(), agentSide.close()]);
      });
      const ownMeans = { stateDir: forGateway.keyStore.stateDir, store, lifecycle, clock: store.clock, log };
      const key = await ownKey(ownMeans);
      await keepAdminKey(ownMeans);
      const agent = await startAgent({
        config: forAgent,
        broker: agentSide,
        alone: forGateway.natsUrl === undefined,
        lifecycle,
        clock,
        log,
        fallbackToScripted: true,
        exit: refuseToExit,
      });
      const { baseUrl } = await startGateway({
        config: forGateway,
        broker: gatewaySide,
        store,
        lifecycle,
        clock,
        log,
      });
      const { runtime, models } = agent;
      const keyFile = hideKey && resolve(ownKeyFile(forGateway.keyStore.stateDir));
      stdout.write(
        json
          ? `${JSON.stringify({ base_url: baseUrl, api_key: key, runtime })}\n`
          : welcome({ baseUrl, key, keyFile, runtime, models, machine: agent.machine }),
      );
    },
  });
}

async function connectBoth(config: GatewayConfig, log: Log): Promise<[Broker, Broker]> {
  const { natsUrl: url, natsCredentialsFile: credentialsFile, natsSecurity: security } = config;
  if (url === undefined) {
    const broker = new MemoryBroker({ clock, log });
    return [broker.connect(), broker.connect()];
  }
  const settings = { url, credentialsFile, security, clock, log };
  return [
    await connectNats({ ...settings, name: "trunkline gateway" }),
    await connectNats({ ...settings, name: "trunkline agent" }),
  ];
}

/** In this process the gateway runs too, and no holder of a key may end it. */
function refuseToExit(): never {
  throw new Fault("unsupported_value", {
    message: "'exit_at' works with an agent that is a process of its own, not with trunkline up.",
    param: "messages",
  });
}

function withoutEmpty(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ""));
}

interface Welcome {
  /** The base URL of the endpoints, including `/v1`. */
  readonly baseUrl: string;
  readonly key: string;
  /** Shown in place of the key where other people can read the output. */
  readonly keyFile?: string | undefined;
  readonly runtime: string | null;
  readonly machine: string;
  readonly models: readonly Model[];
}

/** Returns the message that `trunkline up` prints when it is ready: the URL, the key, and a command to paste. */
export function welcome({ baseUrl, key, keyFile, runtime, machine, models }: Welcome): string {
  const chats = models.find(({ capabilities }) => capabilities.completion);
  return `
Trunkline is ready.

  Base URL  ${baseUrl}
  API key   ${keyFile === undefined ? key : `in the file ${keyFile}`}
  Machine   ${machine}
  Runtime   ${runtimeLine(runtime)}
  Models    ${models.length === 0 ? "none yet" : listed(models.map(({ id }) => id))}
  API page  ${new URL("/docs", baseUrl).href}

${chats === undefined ? noModelYet : firstChat({ baseUrl, key: keyFile === undefined ? key : `$(cat ${inShell(keyFile)})`, model: chats.id })}

Ctrl-C stops it.
`;
}

const noModelYet = `There is no model to chat with yet: \`ollama pull llama3.2\` gets one, and it is served within seconds.`;

function firstChat({ baseUrl, key, model }: { baseUrl: string; key: string; model: string }): string {
  return `A first chat, to paste into another terminal:

  curl -N ${baseUrl}/chat/completions \\
    -H "Authorization: Bearer ${key}" \\
    -H "Content-Type: application/json" \\
    -d ${inShell(JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello!" }] }))}`;
}

/**
 * Quotes a text for a shell. A runtime chooses the names of its models: a name must neither run as a command nor
 * control the terminal that shows it.
 */
function inShell(text: string): string {
  return `'${onOneLine(text).replaceAll("'", String.raw`'\''`)}'`;
}

function runtimeLine(runtime: string | null): string {
  if (runtime === "scripted")
    return "scripted: a demonstration without a model; it gives way to an Ollama as soon as one answers";
  return runtime === null ? "none answers yet; models appear as soon as one does" : onOneLine(runtime);
}

function listed(models: readonly string[]): string {
  const shown = onOneLine(models.slice(0, 8).join(", "));
  return models.length > 8 ? `${shown} and ${models.length - 8} more` : shown;
}
