import { adminTtlMsMax } from "./issue-key.ts";
import { formatDuration } from "./duration.ts";
import type { KeyLimits } from "./key-limits.ts";
import { keyState, replacedSecretsMax, type KeyRecord } from "./key-record.ts";
import type { KeyId } from "./key-token.ts";
import type { KeyDigest, PepperFingerprint } from "./pepper.ts";
import { shownTerms } from "./shown-key.ts";

interface NewSecret {
  readonly digest: KeyDigest;
  readonly pepper: PepperFingerprint;
}

/**
 * The terms of a key that can be changed after it was issued. An omitted term stays as it is; null removes the term.
 */
export interface NewTerms {
  readonly name?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly machines?: readonly string[] | null | undefined;
  readonly limits?: { readonly [Limit in keyof KeyLimits]?: KeyLimits[Limit] | null } | undefined;
}

/** A change to a key that was issued before. */
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
    return changed(record, { revokedAt: nowMs }, change.with === undefined ? undefined : { with: change.with });
  }
  const state = keyState(record, nowMs);
  if (state === "revoked") return { outcome: "refused", reason: "was revoked, and stays so" };
  switch (change.action) {
    case "extended":
      return extend(record, change.ttlMs, nowMs);
    case "rotated": {
      if (state === "expired") return { outcome: "refused", reason: "has expired; extend it first" };
      const validUntil = nowMs + change.graceMs;
      const before = { digest: record.digest, pepper: record.pepper, validUntil };
      const replaced = [before, ...(record.replaced ?? [])]
        .slice(0, replacedSecretsMax)
        .map((secret) => ({ ...secret, validUntil: Math.min(secret.validUntil, validUntil) }));
      return changed(record, { ...change.secret, replaced }, { old_secret_valid_until: isoTime(validUntil) });
    }
    case "changed":
      return changeTerms(record, change.terms);
    case "disabled":
      if (record.disabledAt !== undefined) return { outcome: "unchanged", record };
      return changed(record, { disabledAt: nowMs });
    case "enabled": {
      const { disabledAt, ...enabled } = record;
      return disabledAt === undefined ? { outcome: "unchanged", record } : changed(enabled, {});
    }
    case "repeppered":
      if (record.digest !== change.from) return { outcome: "unchanged", record };
      return changed(record, change.secret);
  }
}

function extend(record: KeyRecord, ttlMs: number, nowMs: number): ChangedKey {
  if (record.kind === "admin" && ttlMs > adminTtlMsMax) {
    return {
      outcome: "refused",
      reason: `is an admin key, which is valid for ${formatDuration(adminTtlMsMax)} at most`,
    };
  }
  const expiresAt = nowMs + ttlMs;
  if (expiresAt < record.expiresAt) {
    return { outcome: "refused", reason: `is valid until ${isoTime(record.expiresAt)} already, which is longer` };
  }
  return changed(record, { expiresAt }, { expires_at: isoTime(expiresAt), was: isoTime(record.expiresAt) });
}

function changeTerms(record: KeyRecord, terms: NewTerms): ChangedKey {
  if (record.kind !== "model" && (terms.scopes ?? terms.machines ?? terms.limits) !== undefined) {
    return {
      outcome: "refused",
      reason: `is a key of kind ${record.kind}, which calls no models: only its name can be changed`,
    };
  }
  const { machines, limits, ...rest } = record;
  const named = Object.entries(terms.limits ?? {}).filter(([, limit]) => limit !== undefined);
  const limited = Object.entries({ ...limits, ...Object.fromEntries(named) }).filter(([, limit]) => limit !== null);
  const bound = terms.machines === undefined ? machines : (terms.machines ?? undefined);
  const after: KeyRecord = {
    ...rest,
    ...(terms.name === undefined ? {} : { name: terms.name }),
    ...(terms.scopes === undefined ? {} : { scopes: terms.scopes }),
    ...(bound === undefined ? {} : { machines: bound }),
    ...(limited.length === 0 ? {} : { limits: Object.fromEntries(limited) }),
  };
  const [now, was] = [after, record].map((each) => ({ name: each.name, ...shownTerms(each) }));
  if (JSON.stringify(now) === JSON.stringify(was)) return { outcome: "unchanged", record };
  return changed(after, {}, { ...now, was });
}

function changed(
  record: KeyRecord,
  fields: Partial<KeyRecord>,
  detail?: Readonly<Record<string, unknown>>,
): ChangedKey {
  const after = { ...record, ...fields, version: record.version + 1 };
  return { outcome: "changed", record: after, ...(detail === undefined ? {} : { detail }) };
}

function isoTime(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
