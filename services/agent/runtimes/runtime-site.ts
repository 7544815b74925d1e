import type { Clock } from "#shared/process/clock.ts";

/** Where a runtime may be, and what the operator said of it. */
export interface RuntimeSite {
  /** Its base URL, without `/v1`. */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** How many jobs it runs at once, where the operator knows better than it tells. */
  readonly slots?: number | undefined;
  readonly clock: Clock;
}
