import { printable, routeName } from "../protocol/identifiers.ts";
import { z } from "zod";
import { boundMachines } from "./key-record.ts";
import type { RecordStore } from "./key-store.ts";
import { machineLabel } from "./machine-record.ts";
import { modelIdCharactersMax } from "../protocol/model.ts";
import { isoTime } from "../process/clock.ts";

/** Maximum number of routes of a site. Every gateway holds all of them. */
export const routesMax = 1_000;
export const targetsPerRouteMax = 8;

/**
 * A model that may answer for the route's name, on any machine or only on those that are named or have a label. Without `external`, machines
 * with that mark never answer, even if they are named.
 */
const targetFields = z.strictObject({
  model: printable(modelIdCharactersMax)
    .refine((id) => !id.includes("*"), "must be the id of one model, without *")
    .describe("The id of the model that answers."),
  machines: boundMachines.optional().describe("The only machines that may answer; absent for all."),
  label: machineLabel.optional().describe("The label that a machine must have to answer; absent for all."),
  external: z
    .literal(true)
    .optional()
    .describe("True to be answered elsewhere: by machines with that mark alone, and for keys issued for it alone."),
});
export const routeTarget = targetFields.refine(({ machines, label }) => machines === undefined || label === undefined, {
  message: "must name machines or a label, and not both",
  path: ["label"],
});
export type RouteTarget = Readonly<z.infer<typeof routeTarget>>;

export const routeTargets = z
  .array(routeTarget)
  .min(1, "must name at least one target")
  .max(targetsPerRouteMax, `must be at most ${targetsPerRouteMax} targets`)
  .readonly();

const wallMs = z.int().nonnegative();

/**
 * The targets of a stored route. A target that this version cannot read is left out: an unknown field may be a
 * restriction that a newer version has set. A name without targets leads to nothing.
 */
const storedTargets = z
  .array(z.unknown())
  .transform((targets) => targets.map((target) => routeTarget.safeParse(target)))
  .transform((read): readonly RouteTarget[] => read.flatMap(({ data }) => data ?? []));

/** The record of a route; times are milliseconds since 1970. Unknown fields are kept. */
export const routeRecord = z.looseObject({
  name: routeName,
  /** 1 for a new record, and one more with every change, so that a writer detects a concurrent change. */
  version: z.int().positive(),
  /** In the order in which they are tried. */
  targets: storedTargets,
  createdAt: wallMs,
  changedAt: wallMs,
});
export type RouteRecord = Readonly<z.output<typeof routeRecord>>;

export type RouteStore = RecordStore<RouteRecord>;

const time = z.iso.datetime();

/** A route as the command line and the admin API show it. */
export const shownModelRoute = z.strictObject({
  route: routeName.describe("The name that clients ask for, or a pattern of names."),
  targets: z.array(routeTarget).readonly().describe("In the order in which they are tried."),
  created_at: time,
  changed_at: time,
});
export type ShownModelRoute = z.infer<typeof shownModelRoute>;

export function showRoute({ name, targets, createdAt, changedAt }: RouteRecord): ShownModelRoute {
  return { route: name, targets, created_at: isoTime(createdAt), changed_at: isoTime(changedAt) };
}
