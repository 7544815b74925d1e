import { z } from "zod";
import { machineName } from "../protocol/identifiers.ts";
import { presence } from "../protocol/presence.ts";

const count = z.int().nonnegative();
const { state, runtime, epoch } = presence.shape;

/**
 * The status of a machine in a gateway's view. The roster ignores the presence of a `left_out` machine. Without a
 * broker the status is `unknown`.
 */
export const machineStandings = ["present", "suspect", "offline", "left_out", "unknown"] as const;
export const machineStanding = z.enum(machineStandings);

/** A machine in the format for operators: in the admin API and on the command line. */
export const shownFleetMachine = z.object({
  machine: machineName,
  epoch: epoch.describe("Which boot of its agent this is: when it started, in milliseconds since 1970, and a tail."),
  status: machineStanding.describe(
    "How this gateway sees it: there, silent for a while, away, there and left out, or unknown without a broker.",
  ),
  state: state.describe("What its agent said of itself last; gone is its goodbye."),
  runtime: runtime.describe("The model servers that answer there; null when none does."),
  slots: count.describe("How many jobs it runs at once."),
  running: count,
  queued: count,
  queue_max: count.describe("How many jobs it lets wait."),
  strays: count.nullable().describe("Requests that its model servers go on with although they were cancelled."),
  heard_ms_ago: count.describe("How long ago this gateway heard it last."),
  models: count.describe("How many models this gateway knows it to offer."),
  open_jobs: count.describe("Jobs of this gateway that are under way there."),
  takes_work: z.boolean().describe("Whether it is asked to do anything at all."),
  last_fault: z
    .object({ code: z.string(), model: z.string(), reason: z.string().nullable(), ms_ago: count })
    .nullish()
    .describe("How a job of this gateway last failed there; null when none did."),
  why: z.string().nullable().describe("Why it gets no work, or less than others; null when it gets its share."),
});
export type ShownFleetMachine = z.infer<typeof shownFleetMachine>;

export const fleetListing = z.object({
  object: z.literal("list"),
  data: z.array(shownFleetMachine).describe("By name; a name that two agents use stands there twice."),
  problem: z
    .string()
    .nullable()
    .describe("Why this gateway cannot use its broker, or not for all that it needs; null when all is well."),
});
export type FleetListing = z.infer<typeof fleetListing>;
