import packageJson from "../../package.json" with { type: "json" };
import type { FastifyInstance } from "fastify";
import type { Broker } from "#shared/broker/broker.ts";
import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import { changeMachine } from "#shared/machines/change-machine.ts";
import type { MachineRecord } from "#shared/machines/machine-record.ts";
import type { Log } from "#shared/process/log.ts";
import type { CredentialAnswer, CredentialRequest } from "#shared/protocol/pairing.ts";
import { machineGrants } from "#shared/protocol/subjects.ts";
import type { BadKeys } from "./keys/bad-keys.ts";
import type { MachineRecords } from "./fleet/machine-records.ts";
import type { Exposition } from "./metrics/exposition.ts";
import { measureTunnels } from "./metrics/fleet-meters.ts";
import { acceptTunnels } from "./tunnels/accept-tunnels.ts";
import type { ConnectRate } from "./tunnels/connect-rate.ts";
import { type DirectConnections, notOffered } from "./tunnels/direct-connections.ts";
import { OpenTunnels, usedTwice } from "./tunnels/open-tunnels.ts";
import { Challenges, pairMachines } from "./tunnels/pair-machines.ts";

/** Opens a connection to the broker for one machine. Its grants are the machine's, or the gateway enforces them alone. */
export type BrokerFor = (machine: string) => Promise<Broker>;

interface TunnelParts {
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
  /** Undefined where machines cannot connect to NATS directly. */
  readonly direct: DirectConnections | undefined;
  readonly rate: ConnectRate;
  readonly exposition: Exposition;
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
export function openTunnels(server: FastifyInstance, parts: TunnelParts): OpenTunnels {
  const { brokerFor, broker, store, records, isNameUsed, badKeys, gateway, direct, rate, exposition, log } = parts;
  const { clock } = store;
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
  const find = machineFinder(records, badKeys);
  const isReady = (): boolean => broker.connected;
  const { payloadBytesMax } = broker;
  const site = records.site.id;
  const { version } = packageJson;
  const tunnels = {
    site,
    gateway,
    version,
    find,
    rate,
    brokerFor,
    grantsOf: machineGrants,
    payloadBytesMax,
    open,
    isReady,
  };
  measureTunnels(exposition, () => open.machines);
  acceptTunnels(server, { ...tunnels, clock, log });
  const challenges = new Challenges({ peppers: store.peppers, clock });
  const issue = async (request: CredentialRequest, address: string): Promise<CredentialAnswer> => {
    if (direct === undefined) throw notOffered();
    await find(request.public_key, address);
    const { answer, record } = await direct.issue(request);
    open.connectsDirectly(record, { boot: request.boot, address });
    return answer;
  };
  const { machines, keys } = store;
  pairMachines(server, { machines, keys, records, isNameUsed, challenges, badKeys, issue, clock, log });
  return open;
}
