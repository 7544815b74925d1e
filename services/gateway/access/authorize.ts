import type { KeyRecord } from "#shared/keys/key-record.ts";
import { allows } from "#shared/keys/scope.ts";
import type { Model } from "#shared/model/model.ts";

/** A model outside a key's scopes is, for that key, a model that does not exist. */
export function mayUse(key: KeyRecord, modelId: string): boolean {
  return allows(key.scopes, modelId);
}

export function visibleTo(key: KeyRecord, models: readonly Model[]): Model[] {
  return models.filter(({ id }) => mayUse(key, id));
}
