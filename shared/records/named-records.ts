/** All kinds of records that stores keep by their names alone. */
import type { z } from "zod";
import { alertForm } from "./alert-record.ts";
import { keepForm } from "./keep-record.ts";
import type { RecordStore } from "./key-store.ts";
import { personForm } from "./person-record.ts";
import { priceForm } from "./price-record.ts";
import type { NamedRecord, RecordForm } from "./record-form.ts";
import { routeForm } from "./route-record.ts";
import { teamForm } from "./team-record.ts";

const forms = [routeForm, keepForm, priceForm, teamForm, personForm, alertForm] as const;
type NamedForm = (typeof forms)[number];

/** The stores of named records, each at the field `at` of its form. */
export type NamedStores = {
  readonly [Each in NamedForm as Each["at"]]: RecordStore<z.output<Each["schema"]>>;
};

/** Opens the store of each kind. */
export function openNamed(open: <Kept extends NamedRecord>(form: RecordForm<Kept>) => RecordStore<Kept>): NamedStores {
  return Object.fromEntries(
    forms.map((form) => [form.at, open(form as unknown as RecordForm<NamedRecord>)]),
  ) as unknown as NamedStores;
}
