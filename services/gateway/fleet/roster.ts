import type { Presence } from "#shared/protocol/presence.ts";
import { addedSilenceMs, type Timing } from "#shared/protocol/timing.ts";
import type { Barred } from "./machine-records.ts";

/** One boot of a machine, which jobs are sent to. */
export interface Target {
  readonly machine: string;
  readonly epoch: string;
}

/** A machine as a gateway sees it: present, silent for a while, or away. */
export type MachineStatus = "present" | "suspect" | "offline";

export interface RosterMachine {
  readonly presence: Presence;
  readonly status: MachineStatus;
  readonly heardAtMs: number;
  /** When this gateway first heard the machine in its present state. */
  readonly stateSinceMs: number;
  /** True if the broker found no subscriber on the machine's subject since the machine was last heard. */
  readonly unreachable: boolean;
  /** True if the machine's record says that it gets no new jobs. */
  readonly isCordoned: boolean;
}

interface Entry {
  presence: Presence;
  heardAtMs: number;
  stateSinceMs: number;
  unreachable: boolean;
}

/** A machine that was silent for this long is forgotten. */
const machineForgottenMs = 86_400_000;

/**
 * A gateway's picture of the machines that are present. It does no I/O: presences and the time come in, statuses come
 * out. The newest epoch of a machine is the machine. Presences of an older epoch are ignored while the newer one is
 * there. They count once it is away: a host whose clock was set back makes epochs that look old.
 */
export class Roster {
  readonly #timing: Timing;
  readonly #barred: (machine: string) => Barred | undefined;
  readonly #entries = new Map<string, Entry>();
  /** Since when the silence of machines counts. */
  aliveSinceMs = 0;

  /** `barred` returns why a machine gets no new jobs. Without it, every machine gets some. */
  constructor(timing: Timing, barred: (machine: string) => Barred | undefined = () => undefined) {
    this.#timing = timing;
    this.#barred = barred;
  }

  /**
   * Takes a presence. Returns `older` and ignores the presence when a newer boot of the machine is there, and `revoked`
   * when the machine was revoked.
   */
  announced(presence: Presence, nowMs: number): "taken" | "older" | "revoked" {
    if (this.isRevoked(presence.machine)) return "revoked";
    const before = this.#entries.get(presence.machine);
    const isOlder = before !== undefined && presence.epoch < before.presence.epoch;
    if (isOlder && this.#status(before, nowMs) !== "offline") return "older";
    if (before === undefined) {
      this.#forgetOld(nowMs);
      this.#entries.set(presence.machine, { presence, heardAtMs: nowMs, stateSinceMs: nowMs, unreachable: false });
    } else {
      if (before.presence.epoch !== presence.epoch || before.presence.state !== presence.state)
        before.stateSinceMs = nowMs;
      before.presence = presence;
      hear(before, nowMs);
    }
    return "taken";
  }

  /** Counts a beat as presence, so that a busy machine is never taken for a dead one. */
  heard(from: { machine: string; epoch: string }, nowMs: number): void {
    const entry = this.#entries.get(from.machine);
    if (entry?.presence.epoch === from.epoch) hear(entry, nowMs);
  }

  /** Marks a machine as unreachable until it is heard again: the broker found no subscriber there. */
  notReached(target: { machine: string; epoch: string }): void {
    const entry = this.#entries.get(target.machine);
    if (entry?.presence.epoch === target.epoch) entry.unreachable = true;
  }

  /** Forgets a machine that was revoked or renamed. A revoked machine is not taken again. */
  forget(machine: string): void {
    this.#entries.delete(machine);
  }

  /** True if an agent of this name is there. */
  isPresent(machine: string, nowMs: number): boolean {
    const entry = this.#entries.get(machine);
    return entry !== undefined && this.#status(entry, nowMs) !== "offline";
  }

  isRevoked(machine: string): boolean {
    return this.#barred(machine) === "revoked";
  }

  /** Records that the gateway's own connection came up. The silence of a machine before that does not count. */
  reconnected(nowMs: number): void {
    this.aliveSinceMs = nowMs;
  }

  /**
   * True if a machine was not heard since the gateway's own connection came back. After a restart of the broker each
   * side reconnects in its own time.
   */
  awaited(machine: string): boolean {
    const entry = this.#entries.get(machine);
    return entry !== undefined && entry.heardAtMs < this.aliveSinceMs;
  }

  /** Returns all machines that are not offline and have not said goodbye. */
  present(nowMs: number): RosterMachine[] {
    const present: RosterMachine[] = [];
    for (const entry of this.#entries.values()) {
      const status = this.#status(entry, nowMs);
      if (status !== "offline") present.push(this.#seenAs(entry, status));
    }
    return present;
  }

  find(machine: string, nowMs: number): RosterMachine | undefined {
    const entry = this.#entries.get(machine);
    return entry === undefined ? undefined : this.#seenAs(entry, this.#status(entry, nowMs));
  }

  all(nowMs: number): RosterMachine[] {
    return Array.from(this.#entries.values(), (entry) => this.#seenAs(entry, this.#status(entry, nowMs)));
  }

  #seenAs({ presence, heardAtMs, stateSinceMs, unreachable }: Readonly<Entry>, status: MachineStatus): RosterMachine {
    const isCordoned = this.#barred(presence.machine) === "cordoned";
    return { presence, status, heardAtMs, stateSinceMs, unreachable, isCordoned };
  }

  #forgetOld(nowMs: number): void {
    for (const [machine, entry] of this.#entries)
      if (nowMs - entry.heardAtMs > machineForgottenMs) this.#entries.delete(machine);
  }

  #status(entry: Entry, nowMs: number): MachineStatus {
    if (entry.presence.state === "gone" || entry.unreachable) return "offline";
    const { roundTripMs = 0 } = entry.presence;
    const silentMs = nowMs - Math.max(entry.heardAtMs, this.aliveSinceMs);
    if (silentMs > this.#timing.offlineAfterMs + addedSilenceMs(entry.presence, this.#timing)) return "offline";
    return silentMs > this.#timing.suspectAfterMs + roundTripMs ? "suspect" : "present";
  }
}

function hear(entry: Entry, nowMs: number): void {
  entry.heardAtMs = nowMs;
  entry.unreachable = false;
}

/** The reason why a machine that announces itself is not taken into the roster. */
export type LeftOutCause = "older" | "other-scale" | "other-version" | "revoked";

export interface LeftOutMachine {
  readonly presence: Presence;
  readonly cause: LeftOutCause;
  readonly heardAtMs: number;
}

/**
 * The most left-out machines that are remembered. Beyond it the machines that were heard least lately are forgotten.
 */
export const leftOutMax = 1_000;

/** The machines that announce themselves and get no work for it, kept for reports to operators. */
export class LeftOut {
  readonly #forgetMs: number;
  /** The left-out machines by machine and boot, in the order in which they were last heard. */
  readonly #machines = new Map<string, LeftOutMachine>();

  constructor({ forgetMs }: { readonly forgetMs: number }) {
    this.#forgetMs = forgetMs;
  }

  heard(presence: Presence, cause: LeftOutCause, nowMs: number): void {
    const boot = `${presence.machine} ${presence.epoch}`;
    this.#machines.delete(boot);
    if (presence.state === "gone") return;
    this.#machines.set(boot, { presence, cause, heardAtMs: nowMs });
    for (const [oldest, { heardAtMs }] of this.#machines) {
      if (this.#machines.size <= leftOutMax && nowMs - heardAtMs <= this.#forgetMs) return;
      this.#machines.delete(oldest);
    }
  }

  all(nowMs: number): readonly LeftOutMachine[] {
    return [...this.#machines.values()].filter(({ heardAtMs }) => nowMs - heardAtMs <= this.#forgetMs);
  }
}
