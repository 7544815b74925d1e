import { z } from "zod";
import { machineName } from "../protocol/machine-name.ts";
import { presence } from "../protocol/presence.ts";

const count = z.int().nonnegative();
const { state, runtime, epoch } = presence.shape;

/** How a gateway sees a machine. One that is left out is heard, and not taken up. */
export const machineStandings = ["present", "suspect", "offline", "left_out"] as const;
export const machineStanding = z.enum(machineStandings);

/** A machine as operators are shown it: over the admin API and by the command line. */
export const shownFleetMachine = z.object({
  machine: machineName,
  epoch: epoch.describe("Which boot of its agent this is: when it started, in milliseconds since 1970, and a tail."),
  status: machineStanding.describe("How this gateway sees it: there, silent for a while, away, or there and left out."),
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
  why: z.string().nullable().describe("Why it gets no work, or less than others; null when it gets its share."),
});
export type ShownFleetMachine = z.infer<typeof shownFleetMachine>;

export const fleetListing = z.object({
  object: z.literal("list"),
  data: z.array(shownFleetMachine).describe("By name; a name that two agents use stands there twice."),
});
export type FleetListing = z.infer<typeof fleetListing>;
