import type { KeyRecord } from "#shared/records/key-record.ts";
import type { RouteTarget } from "#shared/records/route-record.ts";
import { RouteTable } from "../../../services/gateway/fleet/route-records.ts";
import { keyOf } from "./keys/keys-of-a-test.ts";

const { record } = keyOf();
/** A key that may use every model of the site, or as told. */
export const key = (terms: Partial<KeyRecord> = {}): KeyRecord => ({ ...record, ...terms });
/** Routes by name, each with its targets; a text is a model alone. The machines m1 and m3 have the label `fast`. */
export const tableOf = (routes: Readonly<Record<string, readonly (string | RouteTarget)[]>>): RouteTable =>
  new RouteTable(
    Object.entries(routes).map(([name, targets]) => ({
      name,
      version: 1,
      targets: targets.map((target) => (typeof target === "string" ? { model: target } : target)),
      createdAt: 0,
      changedAt: 0,
    })),
    (label) => (label === "fast" ? ["m1", "m3"] : []),
  );
