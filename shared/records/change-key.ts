import { refusalByLineage } from "./key-lineage.ts";
import { isoTime } from "../process/clock.ts";
import { takesAway } from "./audit-entry.ts";
import { adminTtlMsMax, type KeyDependencies } from "./issue-key.ts";
import {
  assertNeeds,
  keyRecord,
  type KeyRecord,
  keyState,
  newTerms,
  type NewTerms,
  replacedSecretsMax,
  withTerms,
} from "./key-record.ts";
import { type KeyStore, type Replication, retryConflicts, UnfoundedStore } from "./key-store.ts";
import { assertRead, isNew } from "./site-gateways.ts";
import { type KeyId, type KeyKind, type KeyToken, mintKeyToken } from "../keys/key-token.ts";
import type { KeyDigest } from "../keys/pepper.ts";
import { formatDuration } from "../process/quantities.ts";
import { shownTerms } from "./shown-key.ts";

/** `replication` is set for a change that takes a right away, if the store has a replica. */
export type KeyChanged = (
  | { readonly outcome: "changed" | "unchanged"; readonly record: KeyRecord }
  /** The key is gone. Only its tombstone was left, or the store was emptied and only gateways still knew the key. */
  | { readonly outcome: "forgotten" }
  | { readonly outcome: "refused"; readonly reason: string }
  | { readonly outcome: "unknown" }
) & { readonly replication?: Replication };

/** Changes a key for every process. The change applies to the record as it is at that moment. */
export async function changeKey(
  id: KeyId,
  change: KeyChange,
  dependencies: Omit<KeyDependencies, "peppers">,
): Promise<KeyChanged> {
  return withReplica(await writeChange(id, change, dependencies), change, dependencies.keys);
}

/** Waits for a replica after a change that takes a right away, also when an earlier call made the change. */
async function withReplica(
  changed: KeyChanged,
  { action }: Pick<KeyChange, "action">,
  keys: KeyDependencies["keys"],
): Promise<KeyChanged> {
  const isMade = changed.outcome !== "refused" && changed.outcome !== "unknown";
  if (!isMade || !takesAway(action) || keys.awaitReplica === undefined) return changed;
  const replication = await keys.awaitReplica();
  return replication === "none" ? changed : { ...changed, replication };
}

/** Changes a key as `changeKey` does, but without the wait for a replica, so that several changes can wait together. */
async function writeChange(
  id: KeyId,
  wish: KeyChange,
  dependencies: Omit<KeyDependencies, "peppers">,
): Promise<KeyChanged> {
  const { keys, clock, actor, admin } = dependencies;
  const attempt = async (): Promise<KeyChanged | "conflict"> => {
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
      const forgotten = await keys.forget(id, { ...entry, name: "lapsed" });
      return forgotten === "written" ? { outcome: "forgotten" } : "conflict";
    }
    const change = boundedBy(admin, found.record, wish, at);
    const refusal = admin && (await refusalByLineage({ admin, record: found.record, change }, keys));
    if (refusal !== undefined) return { outcome: "refused", reason: refusal };
    const done = applyChange(found.record, change, at);
    if (done.outcome !== "changed") return done;
    const { detail } = done;
    const record = keyRecord.parse(done.record);
    assertNeeds(record);
    const terms = newTerms(record, found.record).filter(isNew);
    if (terms.length > 0) assertRead(terms, await keys.gateways());
    const written = await keys.replace(record, {
      ...entry,
      name: record.name,
      ...(detail === undefined ? {} : { detail }),
    });
    return written === "written" ? { outcome: "changed", record } : "conflict";
  };
  return retryConflicts(attempt, "Others keep changing this key. Try again in a moment.");
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

type NewSecret = Pick<KeyRecord, "digest" | "pepper">;

export type KeyChange =
  /** The key is valid for `ttlMs` from now on. */
  | { readonly action: "extended"; readonly ttlMs: number }
  /** The key gets a new secret. Earlier secrets stay valid for at most `graceMs`. */
  | { readonly action: "rotated"; readonly secret: NewSecret; readonly graceMs: number }
  | { readonly action: "changed"; readonly terms: NewTerms }
  | { readonly action: "disabled" }
  | { readonly action: "enabled" }
  /** `with` is set when the key is revoked together with the admin key that issued it. */
  | { readonly action: "revoked"; readonly with?: KeyId }
  /** The secret stays the same; its digest is made with another pepper. */
  | { readonly action: "repeppered"; readonly from: KeyDigest; readonly secret: NewSecret };

export type ChangedKey =
  | { readonly outcome: "changed"; readonly record: KeyRecord; readonly detail?: Readonly<Record<string, unknown>> }
  /** The change has no effect: the record already has the requested values. */
  | { readonly outcome: "unchanged"; readonly record: KeyRecord }
  /** The change is not allowed. `reason` follows «The key …» in a sentence. */
  | { readonly outcome: "refused"; readonly reason: string };

/** Returns the record after a change, or why the change is refused. */
export function applyChange(record: KeyRecord, change: KeyChange, nowMs: number): ChangedKey {
  if (change.action === "revoked") {
    if (record.revokedAt !== undefined) return { outcome: "unchanged", record };
    return changedRecord(record, { revokedAt: nowMs }, change.with === undefined ? undefined : { with: change.with });
  }
  const state = keyState(record, nowMs);
  if (state === "revoked") return refused("was revoked, and stays so");
  switch (change.action) {
    case "extended":
      return extend(record, change.ttlMs, nowMs);
    case "rotated": {
      if (state === "expired") return refused("has expired; extend it first");
      const validUntil = nowMs + change.graceMs;
      const before = { digest: record.digest, pepper: record.pepper, validUntil };
      const replaced = [before, ...(record.replaced ?? [])]
        .slice(0, replacedSecretsMax)
        .map((secret) => ({ ...secret, validUntil: Math.min(secret.validUntil, validUntil) }));
      return changedRecord(record, { ...change.secret, replaced }, { old_secret_valid_until: isoTime(validUntil) });
    }
    case "changed":
      return changeTerms(record, change.terms);
    case "disabled":
      if (record.disabledAt !== undefined) return { outcome: "unchanged", record };
      return changedRecord(record, { disabledAt: nowMs });
    case "enabled": {
      const { disabledAt, ...enabled } = record;
      return disabledAt === undefined ? { outcome: "unchanged", record } : changedRecord(enabled, {});
    }
    case "repeppered":
      if (record.digest !== change.from) return { outcome: "unchanged", record };
      return changedRecord(record, change.secret);
  }
}

function extend(record: KeyRecord, ttlMs: number, nowMs: number): ChangedKey {
  if (record.kind === "admin" && ttlMs > adminTtlMsMax) {
    return refused(`is an admin key, which is valid for ${formatDuration(adminTtlMsMax)} at most`);
  }
  const expiresAt = nowMs + ttlMs;
  if (expiresAt < record.expiresAt) {
    return refused(`is valid until ${isoTime(record.expiresAt)} already, which is longer`);
  }
  return changedRecord(record, { expiresAt }, { expires_at: isoTime(expiresAt), was: isoTime(record.expiresAt) });
}

function changeTerms(record: KeyRecord, terms: NewTerms): ChangedKey {
  const after = withTerms(record, terms);
  const [now, was] = [after, record].map((each) => ({ name: each.name, ...shownTerms(each) }));
  if (after.person === record.person && JSON.stringify(now) === JSON.stringify(was))
    return { outcome: "unchanged", record };
  if (record.kind !== "model" && JSON.stringify(shownTerms(after)) !== JSON.stringify(shownTerms(record))) {
    return refused(`is a key of kind ${record.kind}, which calls no models: only its name can be changed`);
  }
  return changedRecord(after, {}, { ...now, was });
}

function refused(reason: string): ChangedKey {
  return { outcome: "refused", reason };
}

function changedRecord(
  record: KeyRecord,
  fields: Partial<KeyRecord>,
  detail?: Readonly<Record<string, unknown>>,
): ChangedKey {
  const after = { ...record, ...fields, version: record.version + 1 };
  return { outcome: "changed", record: after, ...(detail === undefined ? {} : { detail }) };
}

export const defaultGraceMs = 86_400_000;

/**
 * Gives a key another secret; its id, its terms and its usage stay. The token is shown to its holder once. `kind` is
 * the kind that the caller expects. A record alone does not prove its kind: a writer of the store could have changed a
 * model key into an admin key. The new secret would then make it an admin key.
 */
export async function rotateKey(
  rotation: { readonly id: KeyId; readonly graceMs: number; readonly kind?: KeyKind | undefined },
  dependencies: KeyDependencies,
): Promise<{ readonly changed: KeyChanged; readonly token: KeyToken | undefined }> {
  const { id, graceMs } = rotation;
  const found = await dependencies.keys.find(id);
  const kind = found.kind === "record" ? found.record.kind : "model";
  if (rotation.kind !== undefined && rotation.kind !== kind) {
    const reason = `is of kind ${kind} in the store, and not of kind ${rotation.kind}: if you know that it is, name its kind`;
    return { changed: { outcome: "refused", reason }, token: undefined };
  }
  const token = mintKeyToken(kind, id);
  const { current } = dependencies.peppers;
  const secret = { digest: token.digest(current), pepper: current.fingerprint };
  const changed = await changeKey(id, { action: "rotated", secret, graceMs }, dependencies);
  return { changed, token: changed.outcome === "changed" ? token : undefined };
}

interface Revocation {
  readonly changed: KeyChanged;
  /** The keys that this key had issued and that were revoked with it. */
  readonly revoked: readonly KeyRecord[];
  /** The model keys that this key, or an admin key below it, had issued and that still work. */
  readonly stay: readonly KeyRecord[];
}

/**
 * Revokes a key. For an admin key, also revokes the admin and viewer keys that it issued, recursively. Model keys that
 * any of them issued stay valid, unless `withIssued` is true. A second call finishes a revocation that was interrupted.
 */
export async function revokeKey(
  wish: { readonly id: KeyId; readonly withIssued: boolean },
  dependencies: Omit<KeyDependencies, "peppers" | "keys"> & {
    readonly keys: KeyDependencies["keys"] & Pick<KeyStore, "list">;
  },
): Promise<Revocation> {
  const { id, withIssued } = wish;
  const revocation = { action: "revoked" } as const;
  const changed = await writeChange(id, revocation, dependencies);
  const isAdmin = (changed.outcome === "changed" || changed.outcome === "unchanged") && changed.record.kind === "admin";
  if (!isAdmin) return { changed: await withReplica(changed, revocation, dependencies.keys), revoked: [], stay: [] };
  const family = new Set([id]);
  const revoked: KeyRecord[] = [];
  for (;;) {
    // A key revoked in this round may have issued another key before its revocation. Repeat until there is none.
    const records = await dependencies.keys.list();
    const issued = records.filter(
      (each) => !family.has(each.id) && each.issuedBy !== undefined && family.has(each.issuedBy),
    );
    const goes = issued.filter(({ kind }) => withIssued || kind !== "model");
    if (goes.length === 0) {
      const stay = issued.filter(
        ({ revokedAt, expiresAt }) => revokedAt === undefined && dependencies.clock.wall() < expiresAt,
      );
      return { changed: await withReplica(changed, revocation, dependencies.keys), revoked, stay };
    }
    for (const each of goes) {
      family.add(each.id);
      const { outcome } = await writeChange(each.id, { ...revocation, with: id }, dependencies);
      if (outcome === "changed") revoked.push(each);
    }
  }
}
