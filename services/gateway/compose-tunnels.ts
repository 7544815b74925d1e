import packageJson from "../../package.json" with { type: "json" };
import type { FastifyInstance } from "fastify";
import type { Broker } from "#shared/broker/broker.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { MachineMinter } from "#shared/broker/nats-credentials.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { changeMachine } from "#shared/records/change-machine.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { machineGrants } from "#shared/protocol/subjects.ts";
import { perMinute, RateBuckets } from "#shared/process/rate-buckets.ts";
import { connectsPerMinuteMax } from "#shared/protocol/pairing.ts";
import type { GatewayConfig } from "./config.ts";
import type { BadKeys } from "./keys/bad-keys.ts";
import type { FloodMeter } from "./fleet/flood-guard.ts";
import type { MachineRecords } from "./fleet/machine-records.ts";
import type { Exposition } from "./metrics/exposition.ts";
import { measureTunnels } from "./metrics/fleet-meters.ts";
import { acceptTunnels } from "./tunnels/accept-tunnels.ts";
import { OpenTunnels, usedTwice } from "./tunnels/open-tunnels.ts";
import { Challenges, pairMachines } from "./tunnels/pair-machines.ts";

/** Opens a connection to the broker for one machine. Its grants are the machine's, or the gateway enforces them alone. */
export type BrokerFor = (machine: string) => Promise<Broker>;

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
  { natsSigningKey: signingKey, natsCreds: credentialsFile }: GatewayConfig,
  clock: Clock,
): MachineMinter | undefined {
  return signingKey === undefined ? undefined : new MachineMinter({ signingKey, credentialsFile, clock });
}

interface TunnelDependencies {
  readonly config: GatewayConfig;
  readonly brokerFor: BrokerFor;
  /** This gateway's own connection. */
  readonly broker: Broker;
  readonly store: OpenedKeyStore;
  readonly records: MachineRecords;
  /** True if an agent without a pairing uses the name. */
  readonly isNameUsed: (machine: string) => boolean;
  /** Counts the unknown public keys of each address together with its wrong keys. */
  readonly badKeys: BadKeys;
  /** The name of this boot of the gateway. */
  readonly gateway: string;
  readonly exposition: Exposition;
  readonly meter: FloodMeter;
  readonly lifecycle: Lifecycle;
  readonly log: Log;
}

/**
 * Returns the function that finds the record of a machine by its key. A key that this gateway does not know is asked of
 * the store, and counts as a wrong key of its address. A known machine never waits behind those.
 */
export function machineFinder(
  records: Pick<MachineRecords, "getByKey" | "findByKey">,
  badKeys: BadKeys,
): (publicKey: string, address: string) => Promise<MachineRecord | undefined> {
  return async (publicKey, address) => {
    const known = records.getByKey(publicKey);
    if (known !== undefined) return known;
    const { record } = await badKeys.ask(address, async () => {
      const found = await records.findByKey(publicKey);
      return { outcome: found === undefined ? "invalid" : "known", record: found };
    });
    return record;
  };
}

/** Opens the parts that serve paired machines. */
export async function openTunnels(server: FastifyInstance, parts: TunnelDependencies): Promise<OpenTunnels> {
  const { brokerFor, broker, store, records, isNameUsed, badKeys, gateway, exposition, meter, log } = parts;
  const { machines, keys, clock } = store;
  // Each proof and each connection to the broker costs work, and a proxy that cuts every WebSocket has an agent come back
  // many times a second. Only proven machines are counted, so that nobody uses up the rate of another machine.
  const rate = new RateBuckets(clock, perMinute(connectsPerMinuteMax));
  const cordon = async (machine: string, addresses: readonly string[]): Promise<void> => {
    const reason = `${usedTwice}: from ${addresses.map((address) => address.slice(0, 64)).join(" and from ")}`;
    log.error({ machine, addresses }, "two processes use the credential of this machine, which gets no jobs now");
    const actor = { by: `gateway ${gateway}` };
    await changeMachine(machine, { action: "machine_cordoned", reason }, { ...store, actor });
  };
  const open = new OpenTunnels({
    gateway,
    broker,
    records,
    onUsedTwice: (machine, addresses) => {
      cordon(machine, addresses).catch((error: unknown) => {
        log.error({ err: error, machine }, "the machine could not be cordoned");
      });
    },
    clock,
    log,
  });
  measureTunnels(exposition, () => open.machines);
  const find = machineFinder(records, badKeys);
  acceptTunnels(server, {
    site: records.site.id,
    gateway,
    version: packageJson.version,
    find,
    rate,
    meter,
    brokerFor,
    grantsOf: machineGrants,
    payloadBytesMax: broker.payloadBytesMax,
    open,
    isReady: () => broker.connected,
    clock,
    log,
  });
  const challenges = new Challenges({ peppers: store.peppers, clock });
  pairMachines(server, { machines, keys, records, isNameUsed, challenges, badKeys, clock, log });
  return open;
}
