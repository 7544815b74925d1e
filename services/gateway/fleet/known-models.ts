const dayMs = 86_400_000;

/** How long a model stays known after a machine last offered it. */
export const modelKnownForMs = 30 * dayMs;

/** Above this the models that were seen the longest ago are forgotten: a machine could make up names for ever. */
export const knownModelsMax = 20_000;

export type ModelAcquaintance = "known" | "unknown";

/**
 * The models that machines have offered lately, whether they are there now or not: what tells a model whose machines
 * are away from one that does not exist. All gateways share it, so that all answer alike. It fails with a Fault
 * `backend_unavailable` while its store is away. Times are milliseconds since 1970.
 */
export interface KnownModels {
  /** Notes that these models were offered then. Later sightings win, in whatever order they arrive. */
  remember(seen: { readonly modelIds: readonly string[]; readonly seenAtMs: number }): Promise<void>;
  knows(modelId: string, nowMs: number): Promise<ModelAcquaintance>;
}
