import { Fault } from "../fault/fault.ts";
import type { KeyMeans } from "./issue-key.ts";
import { applyChange, type KeyChange } from "./key-change.ts";
import { keyRecord, type KeyRecord } from "./key-record.ts";
import type { KeyId } from "./key-token.ts";

export type KeyChanged =
  | { readonly outcome: "changed" | "unchanged"; readonly record: KeyRecord }
  /** Only the tombstone was left of it, and is gone too now. */
  | { readonly outcome: "forgotten" }
  | { readonly outcome: "refused"; readonly reason: string }
  | { readonly outcome: "unknown" };

/** Two who change one key at once are rare, and one of them is through at each attempt. */
const attemptsMax = 100;

/** Changes a key for every process, on the record as it is at that moment. */
export async function changeKey(id: KeyId, change: KeyChange, means: Omit<KeyMeans, "peppers">): Promise<KeyChanged> {
  const { keys, clock, actor } = means;
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const found = await keys.find(id);
    const at = clock.wall();
    const entry = { at, ...actor, action: change.action, key: id };
    if (found.kind === "absent") return { outcome: "unknown" };
    if (found.kind === "tombstone") {
      if (change.action !== "revoked") return { outcome: "refused", reason: "expired too long ago; issue another" };
      if ((await keys.forget(id, { ...entry, name: "lapsed" })) === "written") return { outcome: "forgotten" };
      continue;
    }
    const done = applyChange(found.record, change, at);
    if (done.outcome !== "changed") return done;
    const { detail } = done;
    const record = keyRecord.parse(done.record);
    const written = await keys.replace(record, {
      ...entry,
      name: record.name,
      ...(detail === undefined ? {} : { detail }),
    });
    if (written === "written") return { outcome: "changed", record };
  }
  throw new Fault("backend_unavailable", { message: "Others keep changing this key. Try again in a moment." });
}
