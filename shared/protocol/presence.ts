import { z } from "zod";
import { loadNews } from "./frame-payload.ts";
import { epoch, machineName } from "./identifiers.ts";
import { modelIdCharactersMax } from "./model.ts";

const count = z.int().nonnegative();

export const runtimeNameCharactersMax = 100;
export const problemCharactersMax = 200;
const versionCharactersMax = 50;
/** Bounds the round trip that a gateway accepts from a machine, since gateways wait for it. */
export const roundTripMsMax = 5_000;

/** Bounds the models in memory that a presence names, and the bytes of their list. */
export const residentsMax = 32;
export const residentsBytesMax = 6_144;

/** A model in memory, and what its return would cost; see `Resident`. */
const residentFacts = z.object({
  model: z.string().max(modelIdCharactersMax),
  memoryMb: count,
  returnMs: count,
  /** True if requests for it run or wait there. */
  inUse: z.literal(true).optional(),
});

/** The memory of a machine and the models in it. Gateways prefer machines by these facts, and refuse nothing by them. */
export const memoryFacts = z.object({
  totalMb: count,
  freeMb: count,
  /** Free on the disk where models lie; absent where the agent cannot see that disk. */
  diskFreeMb: count.optional(),
  /** True if the agent decides what is loaded. */
  isPlaced: z.literal(true).optional(),
  residents: z.array(residentFacts).max(residentsMax),
  loading: loadNews.optional(),
});
export type MemoryFacts = z.infer<typeof memoryFacts>;

/**
 * An agent's heartbeat. Each one is complete, never a delta, so that a gateway may miss any number of them. `gone` is
 * the last message of an agent that shuts down.
 */
export const presence = z.object({
  machine: machineName,
  epoch,
  state: z.enum(["ready", "waiting", "draining", "gone"]),
  /** The runtimes that respond now. Null when none does: then the machine offers nothing. */
  runtime: z.string().max(runtimeNameCharactersMax).nullable(),
  slots: count,
  running: count,
  queued: count,
  queueMax: count,
  /** The reason why the machine takes no work, unless its runtimes are the reason: its broker grant is too narrow. */
  problem: z.string().max(problemCharactersMax).optional(),
  /** Cancelled requests that the runtimes still work on, where a runtime reports it. */
  strays: count.optional(),
  /** The answers of the runtimes that had bytes which are no UTF-8; absent for none. */
  answersNotUtf8: count.optional(),
  /** Changes with the catalogue, so that gateways fetch the catalogue only then. */
  catalogueDigest: z.string().max(64),
  /** Absent until the memory was read. Agents before 0.3 do not report it. */
  memory: memoryFacts.optional(),
  /** The machine's round trip to the broker in steps of 100 ms; absent below that. Gateways wait longer by it. */
  roundTripMs: count.max(roundTripMsMax).optional(),
  /** True if the machine is connected by a tunnel. Gateways believe in it for `tunnelSilenceMs` longer, and no more. */
  tunnelled: z.literal(true).optional(),
  /** The agent's own version, for people. Older agents do not report it. */
  version: z.string().max(versionCharactersMax).optional(),
  /** The version of the wire that this agent speaks. Agents of version 1 do not report it. */
  wire: z.int().default(1),
  /** The `connectionId` of the agent's broker, where it has one. */
  connection: z.string().max(100).optional(),
  /** The agent's time scale; see `timingAt`. */
  scale: z.number().positive(),
});
export type Presence = z.infer<typeof presence>;
