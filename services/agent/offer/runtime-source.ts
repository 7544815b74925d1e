import type { Runtime } from "../runtimes/runtime.ts";

/** What a look found: a runtime, nothing at all, or something that is no runtime. */
export type Sight = Runtime | "nothing" | "something-else";

/** A place at which a runtime may be. */
export interface RuntimeSource {
  /** As the operator is told: an address or a file. */
  readonly place: string;
  /** One look. May reject, which counts as nothing. */
  look(signal: AbortSignal): Promise<Sight>;
}
