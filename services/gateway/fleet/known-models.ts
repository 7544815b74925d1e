const dayMs = 86_400_000;

/** How long a model stays known after a machine last offered it. */
export const modelKnownForMs = 30 * dayMs;

/** Above this what was seen the longest ago is forgotten: a machine could make up names for ever. */
export const knownSightingsMax = 40_000;

export type ModelAcquaintance = "known" | "unknown";

/**
 * The models that machines have offered lately, whether they are there now or not: what tells a model whose machines
 * are away from one that does not exist. All gateways share it, so that all answer alike. It fails with a Fault
 * `backend_unavailable` while its store is away. Times are milliseconds since 1970.
 */
export interface KnownModels {
  /** Notes what a machine offered then. Later sightings win, in whatever order they arrive. */
  remember(seen: ModelsSeen): Promise<void>;
  /** Whether any machine offered it lately; of those that are named, if any are. */
  knows(
    modelId: string,
    asked: { readonly nowMs: number; readonly machines?: readonly string[] | undefined },
  ): Promise<ModelAcquaintance>;
}

export interface ModelsSeen {
  readonly machine: string;
  readonly modelIds: readonly string[];
  readonly seenAtMs: number;
}

/** What is kept: each model on its machine, and by itself. A model's id may be any text, and a machine has no space. */
export function sightingsOf({ machine, modelIds }: ModelsSeen): string[] {
  return modelIds.flatMap((id) => [` ${id}`, `${machine} ${id}`]);
}

export function sightingsAskedFor(modelId: string, machines: readonly string[] | undefined): string[] {
  return machines === undefined ? [` ${modelId}`] : machines.map((machine) => `${machine} ${modelId}`);
}
