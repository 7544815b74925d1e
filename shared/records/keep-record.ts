import { z } from "zod";
import { isoTime } from "../process/clock.ts";
import { printable } from "../protocol/identifiers.ts";
import { modelIdCharactersMax } from "../protocol/model.ts";
import { boundMachines } from "./key-record.ts";
import type { RecordStore } from "./key-store.ts";

/** Bounds the models that a site keeps in memory. */
export const keepsPerSiteMax = 500;

export const keptModel = printable(modelIdCharactersMax).refine(
  (id) => !id.includes("*"),
  "must be the id of one model, without *",
);

const wallMs = z.int().nonnegative();

export const copiesMax = 64;
export const copies = z.int().min(1).max(copiesMax);

/** The wish that some machines have a model in memory; times are milliseconds since 1970. Unknown fields are kept. */
export const keepRecord = z.looseObject({
  /** The id of the model. */
  name: keptModel,
  /** 1 for a new record, and one more with every change, so that a writer detects a concurrent change. */
  version: z.int().positive(),
  /** The number of machines that are to have it in memory. */
  copies,
  /** The only machines that may. Undefined for all whose owners let models be placed. */
  machines: boundMachines.optional(),
  createdAt: wallMs,
  changedAt: wallMs,
});
export type KeepRecord = Readonly<z.output<typeof keepRecord>>;

export type KeepStore = RecordStore<KeepRecord>;

const time = z.iso.datetime();

/** A kept model as the command line and the admin API show it. */
export const shownKeep = z.strictObject({
  model: keptModel.describe("The id of the model."),
  copies: copies.describe("The number of machines that are to have it in memory."),
  machines: boundMachines.nullable().describe("The only machines that may; null for all that let models be placed."),
  created_at: time,
  changed_at: time,
});
export type ShownKeep = z.infer<typeof shownKeep>;

export function showKeep({ name, copies: wanted, machines, createdAt, changedAt }: KeepRecord): ShownKeep {
  const where = machines ?? null;
  return {
    model: name,
    copies: wanted,
    machines: where,
    created_at: isoTime(createdAt),
    changed_at: isoTime(changedAt),
  };
}

/** Formats a wish for people: `2 copies`, `1 copy on attic`. */
export function keepText({ copies: wanted, machines }: Pick<ShownKeep | KeepRecord, "copies" | "machines">): string {
  const where = machines ? ` on ${machines.join(", ")}` : "";
  return `${wanted === 1 ? "1 copy" : `${wanted} copies`}${where}`;
}
