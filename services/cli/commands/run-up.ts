import { type StartOptions, withOptions } from "./start-options.ts";
import { resolve } from "node:path";
import type { Broker } from "#shared/broker/broker.ts";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { makeSession, signInUrl } from "#shared/records/session-record.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { type Environment, readBoth } from "#shared/process/config.ts";
import { exitCodes, runUntilStopped, StartFailure } from "#shared/process/lifecycle.ts";
import { holdFolder } from "#shared/store/state-database.ts";
import { createLog, type Log } from "#shared/process/log.ts";
import { startAgent } from "../../agent/compose.ts";
import { agentConfig } from "../../agent/config.ts";
import { startGateway } from "../../gateway/compose.ts";
import { type BrokerFor, natsForMachines } from "../../gateway/compose-tunnels.ts";
import { gatewayConfig, type GatewayConfig } from "../../gateway/config.ts";
import type { CliContext } from "../terminal/command-line.ts";
import { requestRows } from "./request-rows.ts";
import { notedUrl } from "../site/find-gateway.ts";
import { keepAdminKey, noteAddresses, ownKey, upFiles } from "../site/up-state.ts";
import { ownCommandHere, welcome } from "./welcome.ts";

export interface UpOptions extends StartOptions {
  readonly json?: true;
  readonly hideKey?: true;
  readonly quiet?: true;
}

/** Runs gateway and agent in one process until they are stopped. */
export async function runUp(context: CliContext, { json, hideKey, quiet, ...given }: UpOptions): Promise<void> {
  const { stdout } = context;
  // A person reads this terminal, so the log shows only requests, warnings and errors unless configured otherwise.
  const named = withOptions(withoutEmpty(context.environment), given);
  // There is no balancer before this process that must learn of a stop first, so the grace period is 0.
  const environment = { TRUNKLINE_LOG_LEVEL: "warn", TRUNKLINE_GRACE_MS: "0", ...named };
  const [forGateway, forAgent] = readBoth(
    () => gatewayConfig(environment),
    () => agentConfig(environment),
  );
  const { logLevel: level, logFormat: format } = forGateway;
  const log = createLog({ level, format, name: "trunkline" });
  const requestLevel = quiet ? "silent" : "TRUNKLINE_LOG_LEVEL" in named ? level : "info";
  const requestLog = createLog({ level: requestLevel, format, name: "trunkline", text: requestRows(process.stderr) });
  await runUntilStopped({
    environment,
    drainMs: forGateway.drainMs,
    log,
    onStopping: () => {
      if (!json) stdout.write("\nFinishing what is under way; Ctrl-C again stops at once.\n");
    },
    async start(lifecycle) {
      const { stateDir, redisUrl } = forGateway;
      if (redisUrl === undefined) lifecycle.onStop("state folder", holdAlone(stateDir));
      const store = await openKeyStore(forGateway, { clock, log });
      lifecycle.onStop("keys", () => store.keys.close());
      const { gatewaySide, agentSide, brokerFor } = await connectBoth(forGateway, log);
      lifecycle.onStop("broker", async () => void (await Promise.all([gatewaySide.close(), agentSide.close()])));
      const ownMeans = { stateDir: forGateway.stateDir, store, lifecycle, clock: store.clock, log };
      const key = await ownKey(ownMeans);
      const adminKey = await keepAdminKey(ownMeans);
      const parts = { lifecycle, clock, log };
      const agent = await startAgent({
        ...parts,
        config: forAgent,
        broker: agentSide,
        alone: forGateway.natsUrl === undefined,
        // Paired machines serve a public site, and no demonstration is to answer among them.
        fallbackToScripted: forGateway.publicUrl === undefined,
        exit: refuseToExit,
      });
      const gateway = { ...parts, config: forGateway, broker: gatewaySide, brokerFor, store, requestLog };
      const { baseUrl, operationsUrl, publicUrl, consoleUrl } = await startGateway(gateway);
      noteAddresses(forGateway.stateDir, { baseUrl, operationsUrl }, lifecycle);
      const { runtime, models, machine } = agent;
      const command = ownCommandHere(context.environment);
      // A link in a log would let every reader of the log in.
      const isSeen = stdout.isTTY === true && !hideKey && !json;
      const link = isSeen ? await signInLink(adminKey, { store, consoleUrl }) : undefined;
      const keyFile = hideKey && resolve(forGateway.stateDir, upFiles.apiKey);
      const shown = { key, keyFile, runtime, models, machine, command, console: { url: consoleUrl, link } };
      if (json)
        stdout.write(`${JSON.stringify({ base_url: baseUrl, api_key: key, runtime, public_url: publicUrl })}\n`);
      else stdout.write(welcome({ baseUrl, publicUrl, ...shown }));
    },
  });
}

/** Holds the state folder: two processes on one embedded store would not know each other's machines and limits. */
function holdAlone(stateDir: string): () => void {
  const release = holdFolder(stateDir);
  if (release !== undefined) return release;
  const url = notedUrl(stateDir, "baseUrl");
  throw new StartFailure(
    exitCodes.unavailable,
    `Another \`trunkline up\` runs on the folder ${resolve(stateDir)}${url === undefined ? "" : `, at port ${new URL(url).port} (${url})`}: use that one or stop it, or set TRUNKLINE_STATE_DIR to another folder.`,
  );
}

/** Makes a link that signs a browser in to the console, in the name of the admin key that `trunkline up` keeps. */
async function signInLink(
  adminKey: KeyId,
  { store, consoleUrl }: { readonly store: OpenedKeyStore; readonly consoleUrl: string },
): Promise<string | undefined> {
  const found = await store.keys.find(adminKey);
  if (found.kind !== "record") return undefined;
  const { token } = await makeSession({ kind: "link", role: "admin", key: found.record }, store);
  return signInUrl(consoleUrl, token.text);
}

async function connectBoth(
  config: GatewayConfig,
  log: Log,
): Promise<{ gatewaySide: Broker; agentSide: Broker; brokerFor: BrokerFor | undefined }> {
  const { natsUrl: url, natsCreds: credentialsFile, natsSecurity: security } = config;
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
