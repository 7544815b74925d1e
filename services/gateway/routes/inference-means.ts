import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { RequestReader } from "../asked/request-reader.ts";
import type { JobPlacer } from "../dispatch/place-job.ts";

/** The dependencies of the routes that ask a model for something. */
export interface InferenceMeans {
  readonly reader: RequestReader;
  readonly placer: JobPlacer;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Returns a key's salt for the caches of runtimes; absent when the operator lets keys share what machines have
   * cached.
   */
  readonly cacheSaltOf?: ((key: KeyRecord) => string) | undefined;
}
