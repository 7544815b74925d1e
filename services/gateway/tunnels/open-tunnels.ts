import { z } from "zod";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import type { Broker } from "#shared/broker/broker.ts";
import { sleep, type Clock, type Timer } from "#shared/process/clock.ts";
import { LogThrottle, type Log } from "#shared/process/log.ts";
import { decodeJson, encodeJson } from "#shared/protocol/frame-payload.ts";
import { machineKey } from "#shared/protocol/pairing.ts";
import { tunnelPattern, tunnelSubject } from "#shared/protocol/subjects.ts";
import type { MachineRecords } from "../fleet/machine-records.ts";
import type { Tunnel, TunnelOwner } from "./tunnel.ts";

/** Interval at which all tunnels are watched for silence. A later look means that this process stood still. */
const lookMs = 1_000;

/** News of a tunnel that opened at another gateway. */
const tunnelNews = z.object({
  gateway: z.string(),
  key: machineKey,
  boot: z.string(),
  address: z.string(),
});

interface Dependencies {
  /** The name of this boot of the gateway. */
  readonly gateway: string;
  /** The connection on which gateways tell each other of tunnels. */
  readonly broker: Pick<Broker, "publish" | "subscribe">;
  readonly records: Pick<MachineRecords, "get" | "onChange">;
  /** Called when two processes use the key of one machine. */
  readonly onUsedTwice: (machine: string, addresses: readonly [string, string]) => void;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn">;
}

/**
 * Owns the tunnels of this gateway. Each machine has one at most, at one of all gateways: the newest wins. A machine that
 * was renamed has another for a while.
 */
export class OpenTunnels implements TunnelOwner {
  readonly #parts: Dependencies;
  /** The tunnels of proven machines, by public key. */
  readonly #tunnels = new Map<string, Tunnel>();
  readonly #all = new Set<Tunnel>();
  readonly #uses = new Map<string, readonly KeyUse[]>();
  /** Reasons for which this gateway closed the latest tunnel of a machine, by public key. */
  readonly #closed = new Map<string, string | undefined>();
  readonly #throttle: LogThrottle;
  readonly #looking: Timer;
  #lookedAtMs: number;

  constructor(parts: Dependencies) {
    this.#parts = parts;
    this.#throttle = new LogThrottle(parts.clock);
    this.#lookedAtMs = parts.clock.now();
    this.#looking = parts.clock.every(lookMs, () => this.#look());
    parts.records.onChange((changes) => {
      for (const { name, before, after } of changes) {
        const key = before?.publicKey ?? "";
        // An operator who lifts a cordon has acted on all uses until now.
        if (after?.publicKey !== key || before?.cordon !== after.cordon) this.#uses.delete(key);
        if (after?.publicKey !== key) this.#closed.delete(key);
        for (const tunnel of this.#all) if (tunnel.machine?.name === name) followRecord(tunnel, after);
        const renamed = this.#tunnels.get(after?.publicKey ?? "");
        if (renamed !== undefined && renamed.machine?.name !== name) renamed.rename(name);
      }
    });
    parts.broker.subscribe(tunnelPattern, ({ data }) => {
      const news = decodeJson(tunnelNews, data);
      if (news !== undefined && news.gateway !== parts.gateway) this.#use(news);
    });
  }

  /** The number of proven machines. */
  get machines(): number {
    return this.#tunnels.size;
  }

  /** The number of open connections, of proven machines and others. */
  get connections(): number {
    return this.#all.size;
  }

  /** Says why this gateway closed the latest tunnel of a machine. Returns undefined if the agent closed it. */
  whyClosed(publicKey = ""): string | undefined {
    const reason = this.#closed.get(publicKey);
    return reason && `its connection was closed: ${reason}`;
  }

  arrived(tunnel: Tunnel): void {
    this.#all.add(tunnel);
  }

  opened(tunnel: Tunnel, { name, publicKey = "" }: MachineRecord): void {
    const { address, boot } = tunnel;
    const { records, log } = this.#parts;
    log.info({ machine: name, address }, "a machine has connected");
    this.#tell(name, { key: publicKey, boot, address });
    this.#tunnels.set(publicKey, tunnel);
    // The record may have changed while the machine was proven.
    followRecord(tunnel, records.get(name));
  }

  /** Tells the other gateways of the use of a key here, and notes it. */
  #tell(machine: string, use: Omit<z.infer<typeof tunnelNews>, "gateway">): void {
    const { gateway, broker } = this.#parts;
    const news = { gateway, ...use };
    broker.publish(tunnelSubject(machine), encodeJson(news));
    this.#use(news, machine);
  }

  /**
   * Notes the use of a key, here or at another gateway, and closes the older tunnel, unless its process goes on in the newer
   * one under another name. Two gateways judge it: the one with
   * the new tunnel, whose machine is `machine`, and the one with the older tunnel.
   */
  #use({ key, boot, address }: z.infer<typeof tunnelNews>, machine?: string): void {
    const older = this.#tunnels.get(key);
    const isHandingOver = older?.isRenamed === true && older.boot === boot;
    if (!isHandingOver) older?.refuse("replaced");
    const isTakeover = older !== undefined && older.boot !== boot;
    const use = { atMs: this.#parts.clock.now(), boot, address, isTakeover };
    const uses = [...(this.#uses.get(key) ?? []), use].slice(-usesKept);
    this.#uses.set(key, uses);
    const name = machine ?? older?.machine?.name;
    const twice = judgeTakeovers(uses);
    if (name === undefined || twice === undefined) return;
    // The two may take turns for days. An operator has still to act on what was told of them.
    if (this.#parts.records.get(name)?.cordon?.reason.startsWith(usedTwice)) return;
    // The next judgement needs new evidence.
    this.#uses.delete(key);
    this.#parts.onUsedTwice(name, twice);
  }

  closed(tunnel: Tunnel, reason: string | undefined): void {
    const { machine, address } = tunnel;
    this.#all.delete(tunnel);
    const key = machine?.publicKey ?? "";
    if (this.#tunnels.get(key) === tunnel) this.#tunnels.delete(key);
    const name = machine?.name;
    if (machine !== undefined) this.#closed.set(key, reason);
    if (machine !== undefined && reason === undefined) {
      this.#parts.log.info({ machine: name, address }, "a machine has disconnected");
    } else if (reason !== undefined && this.#throttle.isDue(name ?? address)) {
      this.#parts.log.warn({ machine: name, address, reason }, "a machine's connection is closed");
    }
  }

  /** Asks all machines to connect to another gateway, spread over the time. */
  async move(overMs: number, deadline: AbortSignal): Promise<void> {
    const tunnels = [...this.#tunnels.values()];
    for (const tunnel of tunnels) {
      tunnel.move();
      await sleep(this.#parts.clock, overMs / tunnels.length, deadline);
    }
  }

  /** Closes all tunnels, because this gateway stops. */
  close(): void {
    this.#looking.cancel();
    for (const tunnel of this.#all) tunnel.end("this gateway stops");
  }

  #look(): void {
    const nowMs = this.#parts.clock.now();
    const restart = nowMs - this.#lookedAtMs > 2 * lookMs;
    this.#lookedAtMs = nowMs;
    for (const tunnel of this.#all) if (tunnel.isOpen) tunnel.watchSilence({ restart });
  }
}

/** Closes a tunnel whose machine was revoked, removed or paired anew, or has had its time since it was renamed. */
function followRecord(tunnel: Tunnel, record: MachineRecord | undefined): void {
  if (record?.publicKey !== tunnel.machine?.publicKey) tunnel.end("the machine has another record");
  else if (record?.revokedAt !== undefined) tunnel.refuse("machine_revoked");
}

/** One proven connection with a machine's key. */
export interface KeyUse {
  readonly atMs: number;
  /** Identifies the process that connected. */
  readonly boot: string;
  readonly address: string;
  /** True if the connection replaced an open one of another process. */
  readonly isTakeover: boolean;
}

/** Begins the reason for which a machine is cordoned whose key two processes use. */
export const usedTwice = "credential_used_twice";

const takeoversMax = 3;
const takeoverWindowMs = 60_000;
/** Uses of a key that are remembered. */
const usesKept = 8;

/**
 * Returns the addresses of two processes that use one key, or undefined as long as a restart explains all uses. Two
 * processes take turns when one connects again after another did; a restarted process never comes back under its old
 * boot. Takeovers count without turns, for a thief who names a new boot each time.
 */
export function judgeTakeovers(uses: readonly KeyUse[]): readonly [string, string] | undefined {
  const latest = uses.at(-1);
  if (latest === undefined) return undefined;
  const other = uses.findLast(({ boot }) => boot !== latest.boot);
  if (other === undefined) return undefined;
  const takesTurns = uses.slice(0, uses.lastIndexOf(other)).some(({ boot }) => boot === latest.boot);
  const takeovers = uses.filter(({ isTakeover, atMs }) => isTakeover && latest.atMs - atMs < takeoverWindowMs);
  return takesTurns || takeovers.length >= takeoversMax ? [other.address, latest.address] : undefined;
}
