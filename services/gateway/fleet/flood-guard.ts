import type { Clock } from "#shared/process/clock.ts";
import { LogThrottle, type Log } from "#shared/process/log.ts";
import { RateBuckets } from "#shared/process/rate-buckets.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/**
 * The most presences, and the most beats, that a machine may send at once. Each gateway that starts calls for one
 * presence of each machine.
 */
export const announcementsAtOnceMax = 100;
/** After that, a machine may send this many in each presence interval, ten times as many as it has to. */
export const announcementsPerIntervalMax = 10;
export type Announcement = "presence" | "beat";

/** Counts the messages that are dropped unread, and the tunnels that are closed for a flood of frames. */
export interface FloodMeter {
  tunnelFlooded(machine: string): void;
  announcementDropped(machine: string, kind: Announcement): void;
}

interface GuardOptions {
  readonly timing: Timing;
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "warn">;
  readonly meter?: Pick<FloodMeter, "announcementDropped"> | undefined;
}

/**
 * Limits how many presences and beats of one machine a gateway reads. The guard sees only the subject of a message,
 * because parsing a message costs a hundred times as much as receiving it.
 */
export class FloodGuard {
  readonly #options: GuardOptions;
  readonly #throttle: LogThrottle;
  readonly #rates: RateBuckets;

  constructor(options: GuardOptions) {
    this.#options = options;
    const intervalMs = options.timing.presenceIntervalMs / announcementsPerIntervalMax;
    this.#rates = new RateBuckets(options.clock, { atOnce: announcementsAtOnceMax, intervalMs });
    this.#throttle = new LogThrottle(options.clock);
  }

  /** True if the message is to be read. A dropped message is counted, and logged once a minute. */
  admits(kind: Announcement, machine: string): boolean {
    const { log, meter } = this.#options;
    const sender = `${kind} ${machine}`;
    if (this.#rates.take(sender) === 0) return true;
    meter?.announcementDropped(machine, kind);
    if (this.#throttle.isDue(sender)) {
      log.warn(
        { machine, kind, announcementsAtOnceMax, announcementsPerIntervalMax },
        "a machine announces itself too often; what exceeds announcementsPerIntervalMax is dropped unread",
      );
    }
    return false;
  }
}
