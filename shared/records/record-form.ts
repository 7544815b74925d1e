import { z } from "zod";
import { isoTime } from "../process/clock.ts";
import type { RecordKind } from "./audit-entry.ts";
import type { RecordStore } from "./key-store.ts";

const wallMs = z.int().nonnegative();

/** The fields of every named record beside its name; times are milliseconds since 1970. */
export const recordFields = {
  /** 1 for a new record, and one more with every change, so that a writer detects a concurrent change. */
  version: z.int().positive(),
  createdAt: wallMs,
  changedAt: wallMs,
};

export interface NamedRecord extends Readonly<z.output<z.ZodObject<typeof recordFields>>> {
  readonly name: string;
}

const time = z.iso.datetime();

/** The times of a record as the command line and the admin API show them. */
export const shownTimes = { created_at: time, changed_at: time };

export function showTimes({ createdAt, changedAt }: NamedRecord) {
  return { created_at: isoTime(createdAt), changed_at: isoTime(changedAt) };
}

/** A kind of named records as data: the stores keep them, and `change-record.ts` changes them. */
export interface RecordForm<Kept, At extends string = string> {
  /** The field of a site that holds their store, the hash in Redis, and the table in SQLite. */
  readonly at: At;
  /** Begins their faults and their actions in the trail: `route_not_found`, `route_set`. */
  readonly noun: "route" | "keep" | "price" | "team" | "person" | "alert";
  /** The field of the trail and the parameter of operations that name one. */
  readonly about: RecordKind;
  readonly schema: z.ZodType<Kept>;
  /** Maximum number of them on a site. Every gateway holds all of them. */
  readonly max: number;
  /** Refuses one more. */
  readonly full: string;
  /** Says that there is none of a name. */
  readonly unknown: (name: string) => string;
  /** Returns what the trail tells of a record. */
  readonly detail: (record: Kept) => Readonly<Record<string, unknown>>;
  /** Returns the name that the trail shows. Undefined for the record's own. */
  readonly titled?: (name: string) => string;
}

/** The store of one kind of records, as a site holds it. */
export type StoreAt<Kept, At extends string> = { readonly [Each in At]: RecordStore<Kept> };
