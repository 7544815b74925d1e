import { printable, routeName } from "../protocol/identifiers.ts";
import { z } from "zod";
import { boundMachines } from "./key-record.ts";
import type { RecordStore } from "./key-store.ts";
import { type RecordForm, recordFields, shownTimes, showTimes } from "./record-form.ts";
import { machineLabel } from "./machine-record.ts";
import { modelIdCharactersMax } from "../protocol/model.ts";

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

/**
 * The targets of a stored route. A target that this version cannot read is left out: an unknown field may be a
 * restriction that a newer version has set. A name without targets leads to nothing.
 */
const storedTargets = z
  .array(z.unknown())
  .transform((targets) => targets.map((target) => routeTarget.safeParse(target)))
  .transform((read): readonly RouteTarget[] => read.flatMap(({ data }) => data ?? []));

/** The record of a route. Unknown fields are kept. */
export const routeRecord = z.looseObject({
  name: routeName,
  /** In the order in which they are tried. */
  targets: storedTargets,
  ...recordFields,
});
export type RouteRecord = Readonly<z.output<typeof routeRecord>>;

export type RouteStore = RecordStore<RouteRecord>;

/** A route as the command line and the admin API show it. */
export const shownModelRoute = z.strictObject({
  route: routeName.describe("The name that clients ask for, or a pattern of names."),
  targets: z.array(routeTarget).readonly().describe("In the order in which they are tried."),
  ...shownTimes,
});
export type ShownModelRoute = z.infer<typeof shownModelRoute>;

export function showRoute(record: RouteRecord): ShownModelRoute {
  const { name, targets } = record;
  return { route: name, targets, ...showTimes(record) };
}

/** Formats a target as the command line reads it: `llama3.2`, `llama3.2 on attic,loft`, `llama3.2 with fast`, or `gpt-5 external`. */
export function targetText({ model, machines, label, external }: RouteTarget): string {
  const where = label === undefined ? machines && ` on ${machines.join(",")}` : ` with ${label}`;
  return `${model}${where ?? ""}${external ? " external" : ""}`;
}

export const routeForm = {
  at: "routes",
  noun: "route",
  about: "route",
  schema: routeRecord,
  max: routesMax,
  full: `There are ${routesMax} routes already (routesMax): remove one first.`,
  unknown: (name) => `There is no route ${name}: \`trunkline routes list\` shows all.`,
  detail: ({ targets }) => ({ targets: targets.map(targetText) }),
} as const satisfies RecordForm<RouteRecord>;
