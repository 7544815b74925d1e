import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/** The times, the clock and the log that all parts of an agent share. */
export interface AgentContext {
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}
