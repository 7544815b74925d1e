import { z } from "zod";
import { setKeep } from "../records/change-keep.ts";
import { removeRecord } from "../records/change-record.ts";
import { copies, keepForm, keptModel, showKeep, shownKeep } from "../records/keep-record.ts";
import { boundMachines } from "../records/key-record.ts";
import { shownPlan } from "../fleet/shown-plan.ts";
import { atGateway, changeOutcome, listRecords, onStore, reads, recordsOf, showChange } from "./operation.ts";

const keepList = recordsOf(z.array(shownKeep).describe("By model."));
const removedKeep = z.strictObject({ model: keptModel, state: z.literal("removed") });

const ofOneModel = {
  ...reads,
  params: z.strictObject({ model: keptModel.describe("The id of the model, percent-encoded.") }),
} as const;

/** The operations of the models that machines keep in memory. */
export const keepOperations = {
  listKeeps: onStore({
    ...reads,
    path: "/keeps",
    summary: "List the models that machines are to keep in memory",
    answer: keepList,
    run: (_, { keeps }) => listRecords((unread) => keeps.list(unread), showKeep),
  }),
  setKeep: onStore({
    ...ofOneModel,
    method: "PUT",
    path: "/keeps/{model}",
    summary: "Have machines keep a model in memory, in place of what was wished for it before",
    body: z.strictObject({
      copies: copies.describe("The number of machines that are to have it in memory."),
      machines: boundMachines.nullish().describe("The only machines that may; null for all that let models be placed."),
    }),
    answer: shownKeep.extend(changeOutcome),
    refusals: ["keep_change_refused"],
    example: { copies: 2, machines: ["attic", "cellar"] },
    async run({ params: { model }, body }, site) {
      const wish = { copies: body.copies, machines: body.machines ?? undefined };
      return showChange(await setKeep(model, wish, site), showKeep);
    },
  }),
  removeKeep: onStore({
    ...ofOneModel,
    method: "DELETE",
    path: "/keeps/{model}",
    summary: "Keep a model in memory no longer; it stays there until another one needs the room",
    answer: removedKeep,
    refusals: ["keep_not_found"],
    async run({ params: { model } }, site) {
      await removeRecord(keepForm, model, site);
      return { model, state: "removed" as const };
    },
  }),
  showPlan: atGateway({
    ...reads,
    path: "/plan",
    summary: "The machines that keep each model in memory or are about to, with the reasons; changes nothing",
    answer: shownPlan,
  }),
};
