import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NatsRevocations } from "#shared/broker/nats-revocations.ts";
import { Fault } from "#shared/fault/fault.ts";
import { issueKey } from "#shared/keys/issue-key.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import { changeMachine } from "#shared/machines/change-machine.ts";
import { type Clock, systemClock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { type CredentialRequest, newMachineKeyPair } from "#shared/protocol/pairing.ts";
import type { Pairing } from "#shared/site/pairing-file.ts";
import { MachineRecords } from "../../services/gateway/fleet/machine-records.ts";
import { BadKeys } from "../../services/gateway/keys/bad-keys.ts";
import { createServer } from "../../services/gateway/server.ts";
import { Challenges, pairMachines } from "../../services/gateway/tunnels/pair-machines.ts";
import { ConnectRate, DirectConnections, type DirectOffer } from "../../services/gateway/tunnels/direct-connections.ts";
import { joinOnStore, lineOnStore } from "./pair-on-store.ts";

const actor = { by: "the operator" };

interface CredentialSiteOptions {
  readonly offer: DirectOffer;
  readonly revocations?: Pick<NatsRevocations, "revoke">;
  readonly clock?: Clock;
}

/** The routes of a gateway at which paired machines get credentials for NATS, in this process, over SQLite. */
export class CredentialSite implements AsyncDisposable {
  readonly origin: string;
  readonly id: string;
  readonly store: Pick<OpenedKeyStore, "keys" | "machines">;
  /** All requests whose challenge was good, in their order. */
  readonly requests: readonly CredentialRequest[];
  /** While true, no credential is issued. */
  isAway = false;
  readonly #records: MachineRecords;
  readonly #clock: Clock;
  readonly #parts: AsyncDisposableStack;

  private constructor(
    site: Pick<CredentialSite, "origin" | "id" | "store" | "requests">,
    rest: { readonly records: MachineRecords; readonly clock: Clock; readonly parts: AsyncDisposableStack },
  ) {
    ({ origin: this.origin, id: this.id, store: this.store, requests: this.requests } = site);
    ({ records: this.#records, clock: this.#clock, parts: this.#parts } = rest);
  }

  static async start({ offer, revocations, clock = systemClock }: CredentialSiteOptions): Promise<CredentialSite> {
    const parts = new AsyncDisposableStack();
    const log = createLog({ level: "silent", name: "test" });
    const stateDir = await mkdtemp(join(tmpdir(), "trunkline-credentials-"));
    parts.defer(() => rm(stateDir, { recursive: true }));
    const store = await openKeyStore(
      { stateDir, redisUrl: undefined, pepper: undefined, pepperAlso: undefined },
      { clock },
    );
    parts.defer(() => store.keys.close());
    // The first key founds the store, which takes no machines before.
    await issueKey({ name: "first", scopes: ["*"], ttlMs: 3_600_000 }, { ...store, clock, actor });
    const { machines } = store;
    const records = new MachineRecords({ machines, log });
    await records.load();
    const direct = new DirectConnections({
      offer,
      revocations,
      machines,
      records,
      rate: new ConnectRate(clock),
      clock,
      log,
    });
    records.onChange(() => void direct.endRevoked());
    const requests: CredentialRequest[] = [];
    let isAway = (): boolean => false;
    const server = createServer({ log, bodyBytesMax: 1024, bodyLimitName: "bodyBytesMax" });
    pairMachines(server, {
      machines,
      keys: store.keys,
      records,
      isNameUsed: () => false,
      challenges: new Challenges({ peppers: store.peppers, clock }),
      badKeys: new BadKeys(clock),
      issue: async (request) => {
        if (isAway()) throw new Fault("backend_unavailable", { message: "The site is away." });
        requests.push(request);
        return (await direct.issue(request)).answer;
      },
      clock,
      log,
    });
    const origin = await server.listen({ host: "127.0.0.1", port: 0 });
    parts.defer(() => server.close());
    const site = new CredentialSite({ origin, id: records.site.id, store, requests }, { records, clock, parts });
    isAway = () => site.isAway;
    return site;
  }

  /** Pairs a machine, and returns what its agent keeps. */
  async pair(machine: string): Promise<Pairing> {
    const means = { machines: this.store.machines, clock: this.#clock };
    const keyPair = newMachineKeyPair();
    const line = await lineOnStore(machine, means);
    const { outcome } = await joinOnStore(line, means, keyPair);
    if (outcome !== "paired") throw new Error(`${machine} was not paired: ${outcome}`);
    const pairedAt = new Date(this.#clock.wall()).toISOString();
    return { ...keyPair, origin: this.origin, join: line.id, site: this.id, machine, pairedAt };
  }

  /** Revokes a machine, as its operator does. `isHeard` false: this gateway does not hear of it. */
  async revoke(machine: string, { isHeard = true } = {}): Promise<void> {
    await changeMachine(machine, { action: "machine_revoked" }, { ...this.store, clock: this.#clock, actor });
    if (isHeard) this.#records.follow.changed(machine);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}
