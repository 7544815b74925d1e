import type { KeyChanged } from "#shared/keys/change-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";

/** The record as it is after a change; undefined when nothing is left of it. What could not be done is told. */
export function changedRecord(
  changed: KeyChanged,
  { id, place }: { readonly id: KeyId; readonly place: string },
): KeyRecord | undefined {
  switch (changed.outcome) {
    case "changed":
    case "unchanged":
      return changed.record;
    case "forgotten":
      return undefined;
    case "refused":
      throw new StartFailure(exitCodes.failed, `The key ${id} ${changed.reason}.`);
    case "unknown":
      throw noSuchKey(id, place);
  }
}

export function noSuchKey(id: KeyId, place: string): StartFailure {
  return new StartFailure(exitCodes.failed, `There is no key ${id} in ${place}: \`trunkline keys list\` shows all.`);
}
