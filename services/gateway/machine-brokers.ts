import { readFileSync } from "node:fs";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { MachineMinter } from "#shared/broker/nats-credentials.ts";
import { NatsRevocations } from "#shared/broker/nats-revocations.ts";
import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import { exitCodes, type Lifecycle, StartFailure } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import type { BrokerFor } from "./compose-tunnels.ts";
import type { GatewayConfig } from "./config.ts";
import type { MachineRecords } from "./fleet/machine-records.ts";
import type { ConnectRate } from "./tunnels/connect-rate.ts";
import { DirectConnections, type DirectOffer } from "./tunnels/direct-connections.ts";

/**
 * Returns the connections to NATS of machines with tunnels. Each has a key of its own, which never leaves this process.
 * Undefined without a signing key: NATS would not admit the machines.
 */
export function natsForMachines(
  config: GatewayConfig,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): BrokerFor | undefined {
  const { natsUrl: url, natsSecurity: security } = config;
  const minter = minterOf(config, clock);
  if (url === undefined || minter === undefined) return undefined;
  return async (machine) => {
    const user = minter.newUser(machine);
    return connectNats({ url, credential: () => user, security, name: `trunkline tunnel ${machine}`, clock, log });
  };
}

function minterOf(
  { natsSigningKey: signingKey, natsCredentialsFile: credentialsFile }: GatewayConfig,
  clock: Clock,
): MachineMinter | undefined {
  return signingKey === undefined ? undefined : new MachineMinter({ signingKey, credentialsFile, clock });
}

interface DirectParts {
  readonly config: GatewayConfig;
  readonly store: OpenedKeyStore;
  readonly records: MachineRecords;
  readonly rate: ConnectRate;
  readonly lifecycle: Lifecycle;
  readonly log: Log;
}

/** Interval at which NATS is asked whether it still refuses revoked machines. */
const endRevokedEveryMs = 60_000;

/** Opens the part that lets paired machines connect to NATS directly. Undefined where NATS is not in operator mode. */
export async function openDirect(parts: DirectParts): Promise<DirectConnections | undefined> {
  const { config, store, records, rate, lifecycle, log } = parts;
  const { clock, machines } = store;
  const minter = minterOf(config, clock);
  if (minter === undefined) return undefined;
  const { natsDirectUrl: servers, natsSecurity } = config;
  const ca = natsSecurity.caFile && readFileSync(natsSecurity.caFile, "utf8");
  const offer: DirectOffer | undefined = servers === undefined ? undefined : { minter, servers, ca };
  const revocations = await openRevocations(parts, minter);
  const direct = new DirectConnections({ offer, revocations, machines, records, rate, clock, log });
  records.onChange(() => void direct.endRevoked());
  const timer = clock.every(endRevokedEveryMs, () => void direct.endRevoked());
  lifecycle.onStop("direct connections", () => timer.cancel());
  void direct.endRevoked();
  return direct;
}

async function openRevocations(
  { config, store: { clock }, lifecycle, log }: DirectParts,
  { account }: MachineMinter,
): Promise<NatsRevocations | undefined> {
  const { natsOperatorKey: operatorKey, natsSystemCredentialsFile: credentialsFile, natsSecurity: security } = config;
  if (operatorKey === undefined) return undefined;
  const url = config.natsSystemUrl ?? config.natsUrl;
  if (url === undefined || credentialsFile === undefined) {
    throw new StartFailure(
      exitCodes.config,
      "TRUNKLINE_NATS_OPERATOR_KEY needs TRUNKLINE_NATS_SYSTEM_CREDS beside it: the file system.creds that `trunkline nats init` made.",
    );
  }
  const name = "trunkline gateway, revocations";
  const system = await connectNats({ url, credentialsFile, security, name, clock, log });
  lifecycle.onStop("system account of NATS", () => system.close());
  return new NatsRevocations({ system, operatorKey, account, clock });
}
