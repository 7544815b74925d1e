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

/** Bounds the models in memory that a presence names, and the bytes of each of its lists. */
export const residentsMax = 32;
export const listBytesMax = 3_072;

/** A model in memory, and what its return would cost; see `Resident`. */
const residentFacts = z.object({
  model: z.string().max(modelIdCharactersMax),
  memoryMb: count,
  returnMs: count,
  /** True if requests for it run or wait there. */
  inUse: z.literal(true).optional(),
  /** True if it makes room for no other model. */
  isKept: z.literal(true).optional(),
});

/** Bounds the models that a machine is told to keep in memory, and the pulls that its presence names. */
export const keepsMax = 16;
export const pullsMax = 8;

/** A model that the site wants in this machine's memory, and how far that is. */
const keepFacts = z.object({
  model: z.string().max(modelIdCharactersMax),
  state: z.enum(["loaded", "loading", "waits", "suspended", "pulling", "missing", "failed"]),
  why: z.string().max(problemCharactersMax).optional(),
});
export type KeepFacts = z.infer<typeof keepFacts>;

/** A pull that is under way on a machine, or has ended lately. */
const pullFacts = z.object({
  model: z.string().max(modelIdCharactersMax),
  state: z.enum(["pulling", "done", "failed"]),
  status: z.string().max(problemCharactersMax),
  percent: count.max(100).optional(),
  totalMb: count.optional(),
  /** Absent until a percent has been pulled, and in agents of 0.3.0. */
  leftMs: count.optional(),
});
export type PullFacts = z.infer<typeof pullFacts>;

/** Why a model left the memory: for a request, for a kept model, or by somebody else, such as its runtime or its owner. */
export const unloadReasons = ["request", "keep", "other"] as const satisfies readonly (keyof LoadCounts["unloads"])[];

/** The loads that an agent asked its runtimes for since it started. */
const loadCounts = z.object({
  loads: count,
  loadMs: count,
  failures: count,
  unloads: z.object({ request: count, keep: count, other: count }),
});
export type LoadCounts = z.infer<typeof loadCounts>;

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
  counts: loadCounts.optional(),
  keeps: z.array(keepFacts).max(keepsMax).optional(),
  pulls: z.array(pullFacts).max(pullsMax).optional(),
  /** True if the owner lets models be pulled, and a runtime there can. */
  canPull: z.literal(true).optional(),
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
  /** True if a runtime reports no number of slots, so that the agent guesses one. */
  guessesSlots: z.literal(true).optional(),
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
/** The part of a presence that the jobs of a machine decide. */
export type MachineLoad = Pick<
  Presence,
  "slots" | "guessesSlots" | "running" | "queued" | "queueMax" | "strays" | "memory"
>;
