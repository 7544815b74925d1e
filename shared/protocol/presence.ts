import { z } from "zod";
import { epoch } from "./epoch.ts";
import { machineName } from "./machine-name.ts";

const count = z.int().nonnegative();

export const runtimeNameCharactersMax = 100;

/**
 * An agent's heartbeat. It is a whole picture each time, never a change of one, so that a gateway may miss any number
 * of them. `gone` is the goodbye of an agent that shuts down.
 */
export const presence = z.object({
  machine: machineName,
  epoch,
  state: z.enum(["ready", "waiting", "draining", "gone"]),
  /** The runtimes that answer just now, or null: then the machine offers nothing. */
  runtime: z.string().max(runtimeNameCharactersMax).nullable(),
  slots: count,
  running: count,
  queued: count,
  queueMax: count,
  /** Requests that the runtimes go on with although they were cancelled, as far as they can be asked. */
  strays: count.optional(),
  /** Changes whenever the catalogue does, so that gateways fetch it only then. */
  catalogueDigest: z.string().max(64),
  /** The shapes of answers that this agent renders. For any other it can be asked for `events`. */
  shapes: z.array(z.string().max(40)).max(40),
  /** See `timingAt`. */
  scale: z.number().positive(),
});
export type Presence = z.infer<typeof presence>;
