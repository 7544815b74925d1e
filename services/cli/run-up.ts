import { resolve } from "node:path";
import { isSea } from "node:sea";
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
import { type BrokerFor, startGateway } from "../gateway/compose.ts";
import { gatewayConfig, type GatewayConfig } from "../gateway/config.ts";
import { natsForMachines } from "../gateway/machine-brokers.ts";
import { noteAddresses } from "./own-addresses.ts";
import { ownCommand, posixShell, powerShell } from "./own-command.ts";
import { keepAdminKey, ownKey, ownKeyFile } from "./own-key.ts";
import { type GgufGiven, type PublicGiven, withGguf, withPublic } from "./start-options.ts";
import { onOneLine } from "./table-text.ts";

export interface UpSurroundings {
  readonly environment: Environment;
  readonly stdout: { write(text: string): unknown };
}

export interface UpGiven extends GgufGiven, PublicGiven {
  readonly json?: true;
  readonly hideKey?: true;
}

/** Runs gateway and agent in one process until they are stopped. */
export async function runUp(surroundings: UpSurroundings, { json, hideKey, ...given }: UpGiven): Promise<void> {
  const { stdout } = surroundings;
  // A person reads this terminal, so the log shows only warnings and errors unless configured otherwise.
  const named = withPublic(withGguf(withoutEmpty(surroundings.environment), given), given);
  // There is no balancer before this process that must learn of a stop first, so the grace period is 0.
  const environment = { TRUNKLINE_LOG_LEVEL: "warn", TRUNKLINE_GRACE_MS: "0", ...named };
  const [forGateway, forAgent] = readBoth(
    () => gatewayConfig(environment),
    () => agentConfig(environment),
  );
  const log = createLog({ level: forGateway.logLevel, format: forGateway.logFormat, name: "trunkline" });
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
      const { gatewaySide, agentSide, brokerFor } = await connectBoth(forGateway, log);
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
        // Paired machines serve a public site, and no demonstration is to answer among them.
        fallbackToScripted: forGateway.publicUrl === undefined,
        exit: refuseToExit,
      });
      const { baseUrl, operationsUrl, publicUrl } = await startGateway({
        config: forGateway,
        broker: gatewaySide,
        brokerFor,
        store,
        lifecycle,
        clock,
        log,
      });
      noteAddresses(forGateway.keyStore.stateDir, { baseUrl, operationsUrl }, lifecycle);
      const { runtime, models } = agent;
      const { argv, execPath, platform } = process;
      const command = ownCommand({
        environment: surroundings.environment,
        script: argv[1],
        execPath,
        isExecutable: isSea(),
        platform,
      });
      const keyFile = hideKey && resolve(ownKeyFile(forGateway.keyStore.stateDir));
      stdout.write(
        json
          ? `${JSON.stringify({ base_url: baseUrl, api_key: key, runtime, public_url: publicUrl })}\n`
          : welcome({ baseUrl, publicUrl, key, keyFile, runtime, models, machine: agent.machine, command }),
      );
    },
  });
}

interface Connections {
  readonly gatewaySide: Broker;
  readonly agentSide: Broker;
  readonly brokerFor: BrokerFor | undefined;
}

async function connectBoth(config: GatewayConfig, log: Log): Promise<Connections> {
  const { natsUrl: url, natsCredentialsFile: credentialsFile, natsSecurity: security } = config;
  if (url === undefined) {
    const broker = new MemoryBroker({ clock, log });
    return { gatewaySide: broker.connect(), agentSide: broker.connect(), brokerFor: async () => broker.connect() };
  }
  const settings = { url, credentialsFile, security, clock, log };
  return {
    gatewaySide: await connectNats({ ...settings, name: "trunkline gateway" }),
    agentSide: await connectNats({ ...settings, name: "trunkline agent" }),
    brokerFor: natsForMachines(config, { clock, log }),
  };
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
  /** The base URL of the endpoints on this host, including `/v1`. */
  readonly baseUrl: string;
  /** The URL by which other hosts reach them, without a path. */
  readonly publicUrl?: string | undefined;
  readonly key: string;
  /** Shown in place of the key where other people can read the output. */
  readonly keyFile?: string | undefined;
  readonly runtime: string | null;
  readonly machine: string;
  readonly models: readonly Model[];
  /** Starts this program once more. */
  readonly command: string;
  readonly platform?: string;
}

/** Returns the message that `trunkline up` prints when it is ready: the URL, the key, and a command to paste. */
export function welcome({
  publicUrl,
  key,
  keyFile,
  runtime,
  machine,
  models,
  command,
  platform = process.platform,
  ...local
}: Welcome): string {
  const shell = platform === "win32" ? inPowerShell : inPosixShell;
  const chats = models.find(({ capabilities }) => capabilities.completion);
  const baseUrl = publicUrl === undefined ? local.baseUrl : `${publicUrl}/v1`;
  const shownKey = keyFile === undefined ? key : shell.fileText(keyFile);
  const chat = chats && shell.chat({ baseUrl, key: shownKey, model: chats.id });
  const first = [
    ...(publicUrl === undefined ? [] : [pairing(command)]),
    ...(chat === undefined ? [] : [`A first chat, to paste into another terminal:\n\n${chat}`]),
    ...(publicUrl === undefined && chat === undefined ? [noModelYet] : []),
  ];
  const here = new URL(local.baseUrl).origin;
  const leadsHere =
    publicUrl === undefined || publicUrl === here ? "" : `\n  Here      ${here}, to which ${publicUrl} must lead`;
  return `
Trunkline is ready.

  Base URL  ${baseUrl}${leadsHere}
  API key   ${keyFile === undefined ? key : `in the file ${keyFile}`}
  Machine   ${machine}
  Runtime   ${runtimeLine(runtime)}
  Models    ${models.length === 0 ? "none yet" : listed(models.map(({ id }) => id))}
  API page  ${new URL("/docs", baseUrl).href}

${first.join("\n\n")}

Ctrl-C stops it.
`;
}

const pairing = (command: string): string =>
  `To pair a GPU machine, name it in another terminal, in this folder and with the same TRUNKLINE_ variables. Paste the line that
this prints on the machine:

  ${command} machines pair attic`;

const noModelYet = `There is no model to chat with yet: \`ollama pull llama3.2\` gets one, and it is served within seconds.`;

interface Chat {
  readonly baseUrl: string;
  readonly key: string;
  readonly model: string;
}

/** The commands of a shell that read a file and begin a chat. */
interface FirstChat {
  fileText(path: string): string;
  chat(about: Chat): string;
}

const messages = [{ role: "user", content: "Hello!" }];

const inPosixShell: FirstChat = {
  fileText: (path) => `$(cat ${posixShell.quoted(path)})`,
  chat: ({ baseUrl, key, model }) => `  curl -N ${baseUrl}/chat/completions \\
    -H "Authorization: Bearer ${key}" \\
    -H "Content-Type: application/json" \\
    -d ${posixShell.quoted(JSON.stringify({ model, stream: true, messages }))}`,
};

const inPowerShell: FirstChat = {
  fileText: (path) => `$(Get-Content ${powerShell.quoted(path)})`,
  chat: ({ baseUrl, key, model }) =>
    `  (Invoke-RestMethod ${baseUrl}/chat/completions -Method Post -ContentType application/json ` +
    `-Headers @{ Authorization = "Bearer ${key}" } ` +
    `-Body ${powerShell.quoted(JSON.stringify({ model, messages }))}).choices[0].message.content`,
};

function runtimeLine(runtime: string | null): string {
  if (runtime === "scripted")
    return "scripted: a demonstration without a model; it gives way to an Ollama as soon as one answers";
  return runtime === null ? "none answers yet; models appear as soon as one does" : onOneLine(runtime);
}

function listed(models: readonly string[]): string {
  const shown = onOneLine(models.slice(0, 8).join(", "));
  return models.length > 8 ? `${shown} and ${models.length - 8} more` : shown;
}
