import type { MachineMinter } from "#shared/broker/nats-credentials.ts";
import type { NatsRevocations } from "#shared/broker/nats-revocations.ts";
import { Fault } from "#shared/fault/fault.ts";
import {
  attemptMachineChange,
  directCredentialMs,
  directMsMax,
  type MachineChange,
} from "#shared/machines/change-machine.ts";
import type { MachineRecord, MachineStore } from "#shared/machines/machine-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import {
  type CredentialAnswer,
  type CredentialRequest,
  connectsPerMinuteMax,
  provesMachine,
} from "#shared/protocol/pairing.ts";
import type { MachineRecords } from "../fleet/machine-records.ts";

/** Direct connections as a site with NATS in operator mode offers them. */
export interface DirectOffer {
  readonly minter: Pick<MachineMinter, "mint">;
  /** URLs at which machines reach NATS (TRUNKLINE_NATS_DIRECT_URL). */
  readonly servers: string;
  /** The authority of NATS' certificate, as PEM. Undefined for a public authority. */
  readonly ca: string | undefined;
}

interface Parts {
  /** Undefined if this site offers none. */
  readonly offer: DirectOffer | undefined;
  /** Undefined without the operator's key: revoked machines then stay connected until their credential expires. */
  readonly revocations: Pick<NatsRevocations, "revoke"> | undefined;
  readonly machines: MachineStore;
  readonly records: Pick<MachineRecords, "site" | "all">;
  readonly rate: Pick<ConnectRate, "admit">;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn">;
}

/** The name of gateways in the audit trail. */
const actor = { by: "gateway" };
/** Bounds the retries after a conflict with another change of the record. */
const attemptsMax = 10;

/** Issues credentials for direct connections to NATS, and ends the connections of revoked machines. */
export class DirectConnections {
  readonly #parts: Parts;
  #ending = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Issues a credential to the machine that signed the challenge. Throws a fault for any other request. */
  async issue({ public_key: publicKey, challenge, signature }: CredentialRequest) {
    const { offer, machines, records, rate, clock } = this.#parts;
    if (!provesMachine(publicKey, signature, { purpose: "credential", site: records.site.id, challenge })) {
      throw new Fault("wrong_proof", { message: "The signature is not of this key for this site and challenge." });
    }
    if (offer === undefined) throw notOffered();
    const startedAt = clock.wall();
    // From the store, since a gateway may not have heard of a revocation yet.
    const found = await machines.findByKey(publicKey);
    if (found === undefined) {
      throw new Fault("machine_unknown", { message: "This site knows no machine with this key. Pair it anew." });
    }
    const waitMs = rate.admit(publicKey);
    if (waitMs > 0) throw tooOften(waitMs);
    const record = await this.#change(found, { action: "machine_direct" });
    const { name: machine, direct } = record;
    const expiresInMs = Math.floor(startedAt + directCredentialMs - clock.wall());
    const jwt = offer.minter.mint(machine, publicKey, {
      lifetimeMs: expiresInMs,
      ...(direct?.formerly && { afterMs: direct.formerly.at }),
    });
    const { servers, ca } = offer;
    const answer: CredentialAnswer = { machine, jwt, servers, ...(ca && { ca }), expires_in_ms: expiresInMs };
    return { record, answer };
  }

  /**
   * Has NATS refuse the keys of revoked machines that may still have a direct connection, and what renamed machines have
   * under their former names. Does it again for an hour, in case that NATS has lost its folder of accounts.
   */
  async endRevoked(): Promise<void> {
    const { revocations, records, clock, log } = this.#parts;
    if (revocations === undefined || this.#ending) return;
    const revoked = [...records.all()].flatMap((record) => {
      const { publicKey, revokedAt, direct } = record;
      const at = revokedAt ?? direct?.formerly?.at;
      if (publicKey === undefined || direct === undefined || at === undefined) return [];
      const isGood = at + directMsMax > clock.wall();
      return isGood ? [{ record, publicKey, at, onlyEarlier: revokedAt === undefined }] : [];
    });
    if (revoked.length === 0) return;
    this.#ending = true;
    try {
      await revocations.revoke(revoked);
      for (const { record } of revoked) {
        if (record.direct?.endedAt !== undefined) continue;
        await this.#change(record, { action: "machine_direct_ended" });
        log.info({ machine: record.name }, "NATS refuses what a machine got before it was revoked or renamed");
      }
    } catch (error) {
      log.warn({ err: error }, "NATS does not yet refuse a revoked machine; gateways ignore it");
    } finally {
      this.#ending = false;
    }
  }

  /** Changes the record of the machine with this key, also if it was changed or renamed since. */
  async #change(found: MachineRecord, change: MachineChange): Promise<MachineRecord> {
    const { machines, clock } = this.#parts;
    let record: MachineRecord | undefined = found;
    for (let attempt = 1; record?.publicKey !== undefined && attempt <= attemptsMax; attempt += 1) {
      const changed = await attemptMachineChange(record, { name: record.name, change }, { machines, clock, actor });
      if (changed.outcome === "changed" || changed.outcome === "unchanged") return changed.record;
      if (changed.outcome === "refused") {
        throw new Fault("machine_revoked", { message: `The machine ${record.name} ${changed.reason}.` });
      }
      record = await machines.findByKey(record.publicKey);
    }
    throw new Fault("backend_unavailable", { message: "The machine's record was changed meanwhile. Try again." });
  }
}

function tooOften(waitMs: number): Fault {
  const retryAfterSeconds = Math.ceil(waitMs / 1_000);
  return new Fault("rate_limit_requests", {
    message: `This machine connects more than ${connectsPerMinuteMax} times in a minute (connectsPerMinuteMax). It may ask again in ${retryAfterSeconds} s.`,
    retryAfterSeconds,
  });
}

export function notOffered(): Fault {
  return new Fault("direct_unavailable", {
    message:
      "This site offers no direct connections to NATS: its gateways have no TRUNKLINE_NATS_DIRECT_URL. The machine connects through a gateway instead.",
  });
}

const minuteMs = 60_000;
const intervalMs = minuteMs / connectsPerMinuteMax;

/**
 * Bounds how often a machine connects to this gateway or gets a credential for NATS. Each proof and each connection to
 * the broker costs work, and a proxy that cuts every WebSocket has an agent come back many times a second. Only proven
 * machines are counted, so that nobody uses up the rate of another machine.
 */
export class ConnectRate {
  readonly #clock: Pick<Clock, "now">;
  /** Time at which the count of each public key is back to nothing. The key that connected last is at the end. */
  readonly #freeAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Counts a connect and returns 0, or returns the milliseconds after which this key may connect again. */
  admit(publicKey: string): number {
    const nowMs = this.#clock.now();
    const freeAtMs = Math.max(this.#freeAtMs.get(publicKey) ?? nowMs, nowMs) + intervalMs;
    const waitMs = freeAtMs - minuteMs - nowMs;
    if (waitMs > 0) return Math.ceil(waitMs);
    this.#freeFrom(publicKey, freeAtMs);
    for (const [key, freeAt] of this.#freeAtMs) {
      if (freeAt > nowMs) break;
      this.#freeAtMs.delete(key);
    }
    return 0;
  }

  /** Uses up the connects of a key, so that its next one is `intervalMs` away. */
  exhaust(publicKey: string): void {
    this.#freeFrom(publicKey, this.#clock.now() + minuteMs);
  }

  #freeFrom(publicKey: string, freeAtMs: number): void {
    this.#freeAtMs.delete(publicKey);
    this.#freeAtMs.set(publicKey, freeAtMs);
  }
}
