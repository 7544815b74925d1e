import type { Catalogue, Model, OfferedModel } from "#shared/model/model.ts";

/**
 * Merges the models of several machines into one list, sorted by id. The same id on several machines is one model. It
 * has the capabilities of all of them and the largest of their windows. It counts as Apple's only when it does on every
 * machine. A request is routed later by what it needs, so no machine gets a request for what it lacks. Fields that only
 * operators see are left out.
 */
export function mergeCatalogues(catalogues: readonly Catalogue[]): Model[] {
  const merged = new Map<string, Model>();
  for (const model of catalogues.flat().map(forClients)) {
    const before = merged.get(model.id);
    merged.set(model.id, before === undefined ? model : merge(before, model));
  }
  return [...merged.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function forClients({ runtime: _runtime, loaded: _loaded, ...model }: OfferedModel): Model {
  return model;
}

function merge(one: Model, other: Model): Model {
  const { apple_mlx: _, ...rest } = one;
  const can = (capability: keyof Model["capabilities"]): boolean =>
    one.capabilities[capability] || other.capabilities[capability];
  return {
    ...rest,
    owned_by: one.owned_by < other.owned_by ? one.owned_by : other.owned_by,
    created: Math.min(one.created, other.created),
    capabilities: {
      completion: can("completion"),
      vision: can("vision"),
      embedding: can("embedding"),
      tools: can("tools"),
      thinking: can("thinking"),
    },
    context_window: Math.max(one.context_window, other.context_window),
    size_mb: Math.max(one.size_mb, other.size_mb),
    runtime_profile: one.runtime_profile === other.runtime_profile ? one.runtime_profile : "auto",
    ...(one.apple_mlx === true && other.apple_mlx === true ? { apple_mlx: true as const } : {}),
  };
}
