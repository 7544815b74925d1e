import { Fault } from "#shared/fault/fault.ts";
import type { KeyChanged } from "#shared/keys/change-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";

/**
 * Returns the record after a change, or undefined when the record was deleted. Throws a `Fault` for a change that
 * failed.
 */
export function changedRecord(changed: KeyChanged): KeyRecord | undefined {
  switch (changed.outcome) {
    case "changed":
    case "unchanged":
      return changed.record;
    case "forgotten":
      return undefined;
    case "refused":
      throw new Fault("key_change_refused", { message: `The key ${changed.reason}.` });
    case "unknown":
      throw keyNotFound();
  }
}

export function keyNotFound(): Fault {
  return new Fault("key_not_found", { message: "There is no key with this id.", param: "id" });
}
