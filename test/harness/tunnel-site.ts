import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Socket } from "node:net";
import type { Broker } from "#shared/broker/broker.ts";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import type { TunnelOptions } from "#shared/site/nats-tunnel.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { newMachineKeyPair, tunnelPath, type MachineKeyPair } from "#shared/protocol/pairing.ts";
import { machineGrants, type Grants } from "#shared/protocol/subjects.ts";
import { MachineRecords } from "../../services/gateway/fleet/machine-records.ts";
import { createServer } from "../../services/gateway/server.ts";
import { acceptTunnels } from "../../services/gateway/tunnels/accept-tunnels.ts";
import { perMinute, RateBuckets } from "#shared/process/rate-buckets.ts";
import { connectsPerMinuteMax } from "#shared/protocol/pairing.ts";
import { OpenTunnels } from "../../services/gateway/tunnels/open-tunnels.ts";

/** The machine records of a site, in memory. */
class RecordsInMemory {
  readonly #byName = new Map<string, MachineRecord>();
  readonly #id = newToken();

  async site(): Promise<{ readonly id: string }> {
    return { id: this.#id };
  }

  async list(): Promise<readonly MachineRecord[]> {
    return [...this.#byName.values()];
  }

  async find(name: string): Promise<MachineRecord | undefined> {
    return this.#byName.get(name);
  }

  async findByKey(key: string): Promise<MachineRecord | undefined> {
    return [...this.#byName.values()].find(({ publicKey }) => publicKey === key);
  }

  put(record: Partial<MachineRecord> & { readonly name: string }): void {
    const version = (this.#byName.get(record.name)?.version ?? 0) + 1;
    this.#byName.set(record.name, { createdAt: 0, changedAt: 0, version, ...record });
  }

  delete(name: string): void {
    this.#byName.delete(name);
  }
}

interface StoredRecords {
  readonly store: RecordsInMemory;
  readonly records: MachineRecords;
}

interface SiteOptions {
  /** The grants of every machine; by default those of its name. */
  readonly grantsOf?: (machine: string) => Grants;
  readonly host?: string;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
  readonly brokerFor?: (machine: string) => Promise<Broker>;
  /** Another gateway of the same site. */
  readonly beside?: TunnelSite;
}

/** A site's embedded broker and the gateway's end of its tunnels, in this process. */
export class TunnelSite implements AsyncDisposable {
  readonly broker: MemoryBroker;
  readonly #store: RecordsInMemory;
  readonly records: MachineRecords;
  /** Each case of a key that two processes used. */
  readonly usedTwice: (readonly [machine: string, addresses: readonly [string, string]])[] = [];
  /** The machine of each tunnel that was closed for a flood. */
  readonly floods: string[] = [];
  readonly open: OpenTunnels;
  readonly logged: string[] = [];
  readonly rate = new RateBuckets(clock, perMinute(connectsPerMinuteMax));
  origin = "";
  /** While false, agents are told that the gateway cannot serve them. */
  isReady = true;
  readonly #server: ReturnType<typeof createServer>;
  readonly #sockets = new Set<Socket>();

  private constructor(options: SiteOptions, { store, records }: StoredRecords) {
    const log = createLog({ level: "info", name: "test", write: (line) => void this.logged.push(line) });
    this.records = records;
    this.#store = store;
    const onUsedTwice = (machine: string, addresses: readonly [string, string]): void =>
      void this.usedTwice.push([machine, addresses]);
    this.broker = options.beside?.broker ?? new MemoryBroker({ clock, log });
    const gateway = newToken();
    this.open = new OpenTunnels({ gateway, broker: this.broker.connect(), records, onUsedTwice, clock, log });
    this.#server = createServer({
      log,
      bodyBytesMax: 1024,
      bodyLimitName: "bodyBytesMax",
      webSocketsAt: tunnelPath,
      tls: options.tls,
    });
    acceptTunnels(this.#server, {
      site: records.site.id,
      gateway,
      version: "0.0.0",
      rate: this.rate,
      meter: { tunnelFlooded: (machine) => void this.floods.push(machine) },
      find: (publicKey) => records.findByKey(publicKey),
      brokerFor: options.brokerFor ?? (async () => this.broker.connect()),
      grantsOf: options.grantsOf ?? machineGrants,
      payloadBytesMax: 1024 * 1024,
      open: this.open,
      isReady: () => this.isReady,
      clock,
      log,
    });
    this.#server.server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  static async start(options: SiteOptions = {}): Promise<TunnelSite> {
    const { host = "127.0.0.1" } = options;
    const store = options.beside === undefined ? new RecordsInMemory() : options.beside.#store;
    const records = new MachineRecords({
      machines: store,
      timing: { renamedWorksMs: 500 },
      clock,
      log: createLog({ level: "silent", name: "test" }),
    });
    await records.load();
    const site = new TunnelSite(options, { store, records });
    await site.#server.listen({ host, port: 0 });
    const address = site.#server.server.address();
    if (typeof address !== "object" || address === null) throw new Error("the site does not listen");
    site.origin = `${options.tls === undefined ? "http" : "https"}://${host}:${address.port}`;
    return site;
  }

  /** Pairs a machine, and returns what its agent needs for a tunnel. */
  pair(
    name: string,
    { ca }: { readonly ca?: Buffer } = {},
  ): MachineKeyPair & Pick<TunnelOptions, "origin" | "site" | "agent" | "isPinned"> {
    const keyPair = newMachineKeyPair();
    this.#store.put({ name, publicKey: keyPair.publicKey });
    const agent = this.origin.startsWith("https") ? new HttpsAgent({ ca }) : new HttpAgent();
    return { ...keyPair, origin: this.origin, site: this.site, agent, isPinned: false };
  }

  get site(): string {
    return this.records.site.id;
  }

  revoke(name: string): Promise<void> {
    return this.#change(name, { revokedAt: 1 });
  }

  cordon(name: string, reason: string | undefined): Promise<void> {
    return this.#change(name, { cordon: reason === undefined ? undefined : { reason, at: 1, by: "the operator" } });
  }

  async #change(name: string, fields: Partial<MachineRecord>): Promise<void> {
    const record = await this.#store.find(name);
    if (record !== undefined) this.#store.put({ ...record, ...fields, version: record.version + 1 });
    this.records.follow.changed(name);
  }

  async rename(from: string, name: string): Promise<void> {
    const record = await this.#store.find(from);
    if (record !== undefined) this.#store.put({ ...record, version: record.version + 1, name });
    this.#store.delete(from);
    this.records.follow.changed(name);
  }

  remove(name: string): void {
    this.#store.delete(name);
    this.records.follow.changed(name);
  }

  /** Cuts all connections, as a network would. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.open.close();
    this.cut();
    await this.#server.close();
  }
}
