import { z } from "zod";
import { machineName } from "../protocol/identifiers.ts";
import { model, type OfferedModel } from "./model.ts";

const {
  id,
  capabilities,
  context_window: contextWindow,
  size_mb: sizeMb,
  created,
  runtime_profile: profile,
} = model.shape;

/** A model on one machine, in the format for operators: in the admin API and on the command line. */
export const shownModel = z.object({
  id,
  machine: machineName,
  runtime: z.string().nullable().describe("The runtime that serves it; null where the machine does not say."),
  capabilities,
  context_window: contextWindow,
  size_mb: sizeMb,
  created,
  runtime_profile: profile,
  apple_mlx: z.boolean(),
  loaded: z.boolean().nullable().describe("Whether it lies in memory now; null where the runtime does not tell."),
});
export type ShownModel = z.infer<typeof shownModel>;

export function showModel(offered: OfferedModel, machine: string): ShownModel {
  return {
    id: offered.id,
    machine,
    runtime: offered.runtime ?? null,
    capabilities: offered.capabilities,
    context_window: offered.context_window,
    size_mb: offered.size_mb,
    created: offered.created,
    runtime_profile: offered.runtime_profile,
    apple_mlx: offered.apple_mlx === true,
    loaded: offered.loaded ?? null,
  };
}

/** The result of a machine in a listing. The listing holds only the models of `listed` machines. */
export const machineStates = ["listed", "no_runtime", "no_answer", "stopping", "offline"] as const;
export type MachineState = (typeof machineStates)[number];

export const shownMachine = z.object({
  machine: machineName,
  state: z
    .enum(machineStates)
    .describe("Whether its models are listed; if not, what is not there: its runtime, its answer, or all of it."),
});
export type ShownMachine = z.infer<typeof shownMachine>;

export const modelListing = z.object({
  object: z.literal("list"),
  data: z.array(shownModel).describe("By id, and by machine where several have it."),
  machines: z.array(shownMachine).describe("Every machine that was asked or is known to be away."),
});
export type ModelListing = z.infer<typeof modelListing>;
