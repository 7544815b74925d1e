import type { Runtime } from "../runtimes/runtime.ts";

/** The result of a look: a runtime, nothing, or a server that is no runtime. */
export type Sight = Runtime | "nothing" | "something-else";

/** A place where a runtime may be. */
export interface RuntimeSource {
  /** The place as messages to the operator name it: an address or a file. */
  readonly place: string;
  /** Looks at the place once. A rejection counts as nothing. */
  look(signal: AbortSignal): Promise<Sight>;
}
