import { Fault } from "../fault/fault.ts";
import { refusalByLineage } from "./admin-lineage.ts";
import { takesAway } from "./audit-entry.ts";
import type { KeyMeans } from "./issue-key.ts";
import { applyChange, type KeyChange } from "./key-change.ts";
import { keyRecord, type KeyRecord } from "./key-record.ts";
import type { Replication } from "./key-store.ts";
import type { KeyId } from "./key-token.ts";
import { UnfoundedStore } from "./store-failure.ts";

/** `replication` is set for a change that takes a right away, if the store has a replica. */
export type KeyChanged = (
  | { readonly outcome: "changed" | "unchanged"; readonly record: KeyRecord }
  /** The key is gone. Only its tombstone was left, or the store was emptied and only gateways still knew the key. */
  | { readonly outcome: "forgotten" }
  | { readonly outcome: "refused"; readonly reason: string }
  | { readonly outcome: "unknown" }
) & { readonly replication?: Replication };

/**
 * Bounds the retries after a conflict. Concurrent changes of one key are rare, and each attempt lets one of them
 * succeed.
 */
const attemptsMax = 100;

/** Changes a key for every process. The change applies to the record as it is at that moment. */
export async function changeKey(id: KeyId, change: KeyChange, means: Omit<KeyMeans, "peppers">): Promise<KeyChanged> {
  return withReplica(await writeChange(id, change, means), change, means.keys);
}

/** Waits for a replica after a change that takes a right away, also when an earlier call made the change. */
export async function withReplica(
  changed: KeyChanged,
  { action }: Pick<KeyChange, "action">,
  keys: KeyMeans["keys"],
): Promise<KeyChanged> {
  const isMade = changed.outcome !== "refused" && changed.outcome !== "unknown";
  if (!isMade || !takesAway(action) || keys.awaitReplica === undefined) return changed;
  const replication = await keys.awaitReplica();
  return replication === "none" ? changed : { ...changed, replication };
}

/** Changes a key as `changeKey` does, but without the wait for a replica, so that several changes can wait together. */
export async function writeChange(id: KeyId, wish: KeyChange, means: Omit<KeyMeans, "peppers">): Promise<KeyChanged> {
  const { keys, clock, actor, admin } = means;
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const at = clock.wall();
    const entry = { at, ...actor, action: wish.action, key: id };
    const found = await keys.find(id).catch(async (error: unknown) => {
      if (!(error instanceof UnfoundedStore) || wish.action !== "revoked") throw error;
      await keys.forget(id, { ...entry, name: "unknown" });
      return undefined;
    });
    if (found === undefined) return { outcome: "forgotten" };
    if (found.kind === "absent") return { outcome: "unknown" };
    if (found.kind === "tombstone") {
      if (wish.action !== "revoked") return { outcome: "refused", reason: "expired too long ago; issue another" };
      if ((await keys.forget(id, { ...entry, name: "lapsed" })) === "written") return { outcome: "forgotten" };
      continue;
    }
    const change = boundedBy(admin, found.record, wish, at);
    const refusal = admin && (await refusalByLineage({ admin, record: found.record, change }, keys));
    if (refusal !== undefined) return { outcome: "refused", reason: refusal };
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

/** Limits the extension of an admin key: it does not outlive the admin key that extends it. */
function boundedBy(admin: KeyRecord | undefined, { kind }: KeyRecord, change: KeyChange, nowMs: number): KeyChange {
  if (admin === undefined || kind !== "admin" || change.action !== "extended") return change;
  return { ...change, ttlMs: Math.min(change.ttlMs, admin.expiresAt - nowMs) };
}

/** Returns `replicated` for programs: true if a replica has the change. Empty when the store has no replica. */
export function replicatedIn({ replication = "none" }: { readonly replication?: Replication }): {
  readonly replicated?: boolean;
} {
  return replication === "none" ? {} : { replicated: replication === "replicated" };
}
