import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { ReadAside } from "../asked/read-aside.ts";
import type { JobPlacer } from "../dispatch/place-job.ts";

/** What the routes have that ask a model for something. */
export interface InferenceMeans {
  readonly reader: ReadAside;
  readonly placer: JobPlacer;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  /** How often clients that wait for a whole answer are told that they are not forgotten, if they bear it; 0 for never. */
  readonly interimMs: number;
}
