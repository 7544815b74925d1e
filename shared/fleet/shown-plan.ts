import { z } from "zod";
import { machineName } from "../protocol/identifiers.ts";
import { keptModel, shownKeep } from "../records/keep-record.ts";

export const planStates = [
  "loaded",
  "loading",
  "waits",
  "suspended",
  "pulling",
  "missing",
  "failed",
  "load",
  "pull",
  "unmet",
] as const;

/** The plan for the kept models, in the format for operators. */
export const shownPlan = z.object({
  object: z.literal("list"),
  data: z
    .array(
      z.object({
        model: keptModel,
        machine: machineName.nullable().describe("Null for a copy that no machine can have."),
        state: z
          .enum(planStates)
          .describe("load and pull: it is told so now. unmet: no machine can. The others are the machine's own words."),
        why: z.string(),
      }),
    )
    .describe("One entry for each wished copy."),
  keeps: z.array(shownKeep).describe("The wishes themselves."),
});
export type ShownPlan = z.infer<typeof shownPlan>;
