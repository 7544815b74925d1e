import type { KeyRecord } from "#shared/records/key-record.ts";
import { aliasedId, type DetailedModel } from "#shared/protocol/model.ts";
import { allows } from "#shared/records/match-scope.ts";
import type { RouteTarget } from "#shared/records/route-record.ts";
import type { RouteTable } from "../fleet/route-records.ts";
import type { ModelTarget } from "../routing/job-placements.ts";
import { type MachineRanking, modelNotFound } from "../routing/rank-machines.ts";
import { type Listing, type LiveModels, offeredModel } from "../jobs/live-models.ts";

/** The models that may answer for a name that a client asks for. */
export interface ResolvedModel {
  /** In the order in which they are tried; there is one at least. */
  readonly targets: readonly ModelTarget[];
  /** The name, if a route leads from it to the models; and the first of these models. */
  readonly routed: string | undefined;
  readonly routedTo: string | undefined;
}

/**
 * Resolves a name that a client asks for. A route of that name comes before a model of that name, and its targets are
 * models, never routes. The key's scopes must allow the name, and a target: other targets are left out. Throws
 * `model_not_found` if none is left.
 */
export function resolveModel(asked: string, key: KeyRecord, routes: RouteTable): ResolvedModel {
  if (!allows(key.scopes, asked)) throw modelNotFound(asked);
  const route = routes.find(asked);
  if (route === undefined) return { targets: [targetOf(asked, key)], routed: undefined, routedTo: undefined };
  const targets = route.targets.flatMap((target) => withinKey(target, key) ?? []);
  const [first] = targets;
  if (first === undefined) throw modelNotFound(asked);
  return { targets, routed: asked, routedTo: first.modelId };
}

/**
 * Returns the name that a client of Ollama's means. Such a client may write `:latest` behind any name, also behind the
 * name of a route, and behind a name that only a scope without a tag allows.
 */
export function withoutLatest(asked: string, key: KeyRecord, routes: RouteTable): string {
  const name = aliasedId(asked);
  return routes.find(name) === undefined && allows(key.scopes, asked) ? asked : name;
}

/** The terms that decide which models are seen. */
type Grant = Pick<KeyRecord, "scopes" | "machines" | "external">;

function targetOf(modelId: string, key: Grant): ModelTarget {
  const alias = aliasedId(modelId);
  // The id does not stand for an alias that the key may not use.
  const isExact = alias !== modelId && !allows(key.scopes, alias);
  return { modelId, isExact, machines: key.machines };
}

/**
 * Returns a route's target as a key may use it. Undefined if the key may not use its model or any of its machines, or
 * may not leave the site for it.
 */
function withinKey({ model, machines, external }: RouteTarget, key: Grant): ModelTarget | undefined {
  if (!allows(key.scopes, model)) return undefined;
  if (external && !key.external) return undefined;
  const allowed = machines?.filter((machine) => key.machines?.includes(machine) ?? true) ?? key.machines;
  return allowed?.length === 0 ? undefined : { ...targetOf(model, key), machines: allowed, external };
}

/**
 * Returns the models that a key can ask for, sorted by id. A name of a route is listed while a machine offers one of its
 * targets, with the properties of the first such target. Patterns are not listed, since they are no names.
 */
export function listModels(listing: Listing, key: Grant, routes: RouteTable): DetailedModel[] {
  const names = new Set(
    [...listing.models.map(({ id }) => id), ...routes.names()].filter((id) => allows(key.scopes, id)),
  );
  const models = listing.models.filter(({ id }) => names.has(id) && routes.find(id) === undefined);
  for (const name of names) {
    const route = routes.find(name);
    const targets = route?.targets.flatMap((target) => withinKey(target, key) ?? []);
    const model = targets && modelOf(targets, listing, name);
    if (model !== undefined) models.push(model);
  }
  return models.toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

/** Returns a model as a key finds it, or throws the fault that says why it is not there. */
export async function findListed(
  id: string,
  key: KeyRecord,
  parts: { readonly models: LiveModels; readonly ranking: MachineRanking; readonly routes: RouteTable },
): Promise<DetailedModel> {
  const { targets, routed } = resolveModel(id, key, parts.routes);
  const model = modelOf(targets, await parts.models.list(key), routed);
  if (model === undefined) throw await parts.ranking.absenceOf(targets, id);
  return model;
}

/** Returns the first target that a machine offers now, under the name of its route if there is one. */
function modelOf(
  targets: readonly ModelTarget[],
  { answers }: Listing,
  routed: string | undefined,
): DetailedModel | undefined {
  for (const target of targets) {
    const model = offeredModel(answers, target);
    if (model !== undefined) return routed === undefined ? model : { ...model, id: routed };
  }
  return undefined;
}
