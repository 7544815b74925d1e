import type { Presence } from "#shared/protocol/presence.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/** How a gateway sees a machine: there, silent for a while, or away. */
export type MachineStatus = "present" | "suspect" | "offline";

export interface RosterMachine {
  readonly presence: Presence;
  readonly status: MachineStatus;
  readonly heardAtMs: number;
  /** The broker found nobody on the machine's subject since it was last heard. */
  readonly unreachable: boolean;
}

interface Entry {
  presence: Presence;
  heardAtMs: number;
  unreachable: boolean;
}

/** A machine that was not heard for this long is no longer told of. */
const forgetMs = 86_400_000;

/**
 * A gateway's picture of who is there. It only decides: what is heard and what time it is come in, what is known comes
 * out. The newest epoch of a machine is the machine; what an older one says is not heard while the newer one is there.
 * (Only then: a host whose clock was set back makes epochs that look old.)
 */
export class Roster {
  readonly #timing: Timing;
  readonly #entries = new Map<string, Entry>();
  #aliveSinceMs = 0;

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  /** `older` when a newer boot of the machine is there: what the older one says is then not heard. */
  announced(presence: Presence, nowMs: number): "taken" | "older" {
    const before = this.#entries.get(presence.machine);
    const isOlder = before !== undefined && presence.epoch < before.presence.epoch;
    if (isOlder && this.#status(before, nowMs) !== "offline") return "older";
    if (before === undefined) {
      this.#forgetOld(nowMs);
      this.#entries.set(presence.machine, { presence, heardAtMs: nowMs, unreachable: false });
    } else {
      before.presence = presence;
      hear(before, nowMs);
    }
    return "taken";
  }

  /** A beat counts as presence: a busy machine is never taken for a dead one. */
  heard(from: { machine: string; epoch: string }, nowMs: number): void {
    const entry = this.#entries.get(from.machine);
    if (entry?.presence.epoch === from.epoch) hear(entry, nowMs);
  }

  /** The broker found nobody there; so it is until the machine is heard again. */
  notReached(target: { machine: string; epoch: string }): void {
    const entry = this.#entries.get(target.machine);
    if (entry?.presence.epoch === target.epoch) entry.unreachable = true;
  }

  /** The gateway's own connection came up: nobody's silence before that counts. */
  reconnected(nowMs: number): void {
    this.#aliveSinceMs = nowMs;
  }

  /** Whether a machine was not heard since the gateway's own connection came back: after a restart of the broker each
   * side reconnects in its own time. */
  awaited(machine: string): boolean {
    const entry = this.#entries.get(machine);
    return entry !== undefined && entry.heardAtMs < this.#aliveSinceMs;
  }

  /** All machines that are not offline and have not said goodbye. */
  present(nowMs: number): RosterMachine[] {
    const present: RosterMachine[] = [];
    for (const entry of this.#entries.values()) {
      const status = this.#status(entry, nowMs);
      if (status !== "offline") present.push(seenAs(entry, status));
    }
    return present;
  }

  find(machine: string, nowMs: number): RosterMachine | undefined {
    const entry = this.#entries.get(machine);
    return entry === undefined ? undefined : seenAs(entry, this.#status(entry, nowMs));
  }

  all(nowMs: number): RosterMachine[] {
    return Array.from(this.#entries.values(), (entry) => seenAs(entry, this.#status(entry, nowMs)));
  }

  #forgetOld(nowMs: number): void {
    for (const [machine, entry] of this.#entries) if (nowMs - entry.heardAtMs > forgetMs) this.#entries.delete(machine);
  }

  #status(entry: Entry, nowMs: number): MachineStatus {
    if (entry.presence.state === "gone" || entry.unreachable) return "offline";
    const silentMs = nowMs - Math.max(entry.heardAtMs, this.#aliveSinceMs);
    if (silentMs > this.#timing.offlineAfterMs) return "offline";
    return silentMs > this.#timing.suspectAfterMs ? "suspect" : "present";
  }
}

function hear(entry: Entry, nowMs: number): void {
  entry.heardAtMs = nowMs;
  entry.unreachable = false;
}

function seenAs({ presence, heardAtMs, unreachable }: Readonly<Entry>, status: MachineStatus): RosterMachine {
  return { presence, status, heardAtMs, unreachable };
}
