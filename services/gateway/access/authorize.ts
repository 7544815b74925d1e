import type { KeyRecord } from "#shared/keys/key-record.ts";
import { allows } from "#shared/keys/scope.ts";
import type { Model } from "#shared/model/model.ts";
import { aliasedId } from "../fleet/catalogues.ts";

/** True if the key's scopes allow the model. Any other model does not exist for that key. */
export function mayUse(key: KeyRecord, modelId: string): boolean {
  return allows(key.scopes, modelId);
}

/** True if `modelId` must not stand for its alias here, because the key may not use the alias. */
export function needsExactId(key: KeyRecord, modelId: string): boolean {
  const other = aliasedId(modelId);
  return other !== modelId && !mayUse(key, other);
}

export function visibleTo(key: KeyRecord, models: readonly Model[]): Model[] {
  return models.filter(({ id }) => mayUse(key, id));
}
