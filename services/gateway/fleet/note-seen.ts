import { machineRecordsMax, type MachineStore, type SeenMachine } from "#shared/records/machine-record.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Catalogues } from "./catalogues.ts";
import type { MachineRecords } from "./machine-records.ts";
import type { Roster } from "./roster.ts";

/** Interval at which a gateway notes all machines that it heard, in one write. */
const lookMs = 10_000;

interface SeenParts {
  readonly roster: Pick<Roster, "all">;
  readonly records: Pick<MachineRecords, "get">;
  readonly catalogues: Pick<Catalogues, "of">;
  readonly machines: Pick<MachineStore, "noteSeen">;
  readonly clock: Pick<Clock, "now" | "wall" | "every">;
  readonly log: Pick<Log, "warn">;
}

/** Notes in the store when this gateway last heard each paired machine, and what it offered, for the time when none hears it. */
export class SeenMachines {
  readonly #parts: SeenParts;
  readonly #timer: Timer;
  /** The times when machines were noted, by public key. */
  readonly #notedAtMs = new Map<string, number>();

  constructor(parts: SeenParts) {
    this.#parts = parts;
    this.#timer = parts.clock.every(lookMs, () => void this.#note());
  }

  /** Notes a machine that is about to be forgotten. */
  async leaving(machine: string): Promise<void> {
    await this.#note(machine);
  }

  async stop(): Promise<void> {
    this.#timer.cancel();
    await this.#note();
  }

  /** Notes machines that were heard since they were noted. */
  async #note(only?: string): Promise<void> {
    const { roster, records, catalogues, machines, clock, log } = this.#parts;
    const nowMs = clock.now();
    const hostToWallMs = clock.wall() - nowMs;
    const seen = new Map<string, SeenMachine>();
    for (const { presence, heardAtMs } of roster.all(nowMs)) {
      const { machine } = presence;
      const publicKey = records.get(machine)?.publicKey;
      if (publicKey === undefined || (only !== undefined && only !== machine)) continue;
      const notedAtMs = this.#notedAtMs.get(publicKey) ?? -Infinity;
      if (heardAtMs < notedAtMs) continue;
      const { runtime } = presence;
      seen.set(publicKey, { atMs: heardAtMs + hostToWallMs, runtime, models: catalogues.of(presence).length });
    }
    if (seen.size === 0) return;
    try {
      await machines.noteSeen(seen);
      if (this.#notedAtMs.size > machineRecordsMax) this.#notedAtMs.clear();
      for (const publicKey of seen.keys()) this.#notedAtMs.set(publicKey, nowMs);
    } catch (error) {
      log.warn({ err: error }, "it could not be noted when machines were seen; the next attempt notes it");
    }
  }
}
