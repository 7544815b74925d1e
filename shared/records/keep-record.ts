import { z } from "zod";
import { printable } from "../protocol/identifiers.ts";
import { modelIdCharactersMax } from "../protocol/model.ts";
import { boundMachines } from "./key-record.ts";
import type { RecordStore } from "./key-store.ts";
import { type RecordForm, recordFields, shownTimes, showTimes } from "./record-form.ts";

/** Bounds the models that a site keeps in memory. */
export const keepsPerSiteMax = 500;

export const keptModel = printable(modelIdCharactersMax).refine(
  (id) => !id.includes("*"),
  "must be the id of one model, without *",
);

export const copiesMax = 64;
export const copies = z.int().min(1).max(copiesMax);

/** The wish that some machines have a model in memory. Unknown fields are kept. */
export const keepRecord = z.looseObject({
  /** The id of the model. */
  name: keptModel,
  /** The number of machines that are to have it in memory. */
  copies,
  /** The only machines that may. Undefined for all whose owners let models be placed. */
  machines: boundMachines.optional(),
  ...recordFields,
});
export type KeepRecord = Readonly<z.output<typeof keepRecord>>;

export type KeepStore = RecordStore<KeepRecord>;

/** A kept model as the command line and the admin API show it. */
export const shownKeep = z.strictObject({
  model: keptModel.describe("The id of the model."),
  copies: copies.describe("The number of machines that are to have it in memory."),
  machines: boundMachines.nullable().describe("The only machines that may; null for all that let models be placed."),
  ...shownTimes,
});
export type ShownKeep = z.infer<typeof shownKeep>;

export function showKeep(record: KeepRecord): ShownKeep {
  const { name, copies: wanted, machines = null } = record;
  return { model: name, copies: wanted, machines, ...showTimes(record) };
}

/** Formats a wish for people: `2 copies`, `1 copy on attic`. */
export function keepText({ copies: wanted, machines }: Pick<ShownKeep | KeepRecord, "copies" | "machines">): string {
  const where = machines ? ` on ${machines.join(", ")}` : "";
  return `${wanted === 1 ? "1 copy" : `${wanted} copies`}${where}`;
}

export const keepForm = {
  at: "keeps",
  noun: "keep",
  about: "model",
  schema: keepRecord,
  max: keepsPerSiteMax,
  full: `There are ${keepsPerSiteMax} kept models already (keepsPerSiteMax): remove one first.`,
  unknown: (name) => `The model '${name}' is not kept: \`trunkline models plan\` shows those that are.`,
  detail: (record) => ({ keeps: keepText(record) }),
} as const satisfies RecordForm<KeepRecord>;
