import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";

/** The address of a possible runtime, and the operator's settings for it. */
export interface RuntimeSite {
  /** The base URL of the runtime, without `/v1`. */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** The number of jobs that the runtime runs at once, where the operator overrides the reported number. */
  readonly slots?: number | undefined;
  readonly clock: Clock;
  readonly log?: Pick<Log, "warn"> | undefined;
}
