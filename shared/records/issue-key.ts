import { dayMs } from "#shared/process/clock.ts";
import { adminLineageMax, issuersOf } from "./key-lineage.ts";
import { Fault } from "../fault/fault.ts";
import type { Clock } from "../process/clock.ts";
import type { Actor } from "./audit-entry.ts";
import { assertNeeds, keyRecord, type KeyRecord, newTerms, type NewTerms, withTerms } from "./key-record.ts";
import { assertRead, isNew } from "./site-gateways.ts";
import type { KeyStore } from "./key-store.ts";
import { type KeyKind, type KeyToken, mintKeyToken } from "../keys/key-token.ts";
import type { Peppers } from "../keys/pepper.ts";
import { formatDuration } from "../process/quantities.ts";
import { shownTerms } from "./shown-key.ts";

export const defaultTtlMs = 90 * dayMs;
/** Longest validity of an admin key. It is short because an admin key can issue keys of any kind. */
export const adminTtlMsMax = 90 * dayMs;

/** A key to be issued, for `ttlMs` from now on. */
export type NewKey = NewTerms &
  Pick<KeyRecord, "name" | "scopes"> & { readonly kind?: KeyKind; readonly ttlMs: number };

export interface KeyDependencies {
  readonly keys: Pick<KeyStore, "find" | "issue" | "replace" | "forget" | "gateways"> &
    Partial<Pick<KeyStore, "awaitReplica">>;
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
  readonly admin?: KeyRecord | undefined;
}

export interface IssuedKey {
  /** Shown to its holder once. Nothing stored allows it to be recovered. */
  readonly token: KeyToken;
  readonly record: KeyRecord;
}

export async function issueKey(
  { kind = "model", name, scopes, ttlMs, ...terms }: NewKey,
  { keys, peppers, clock, actor, admin }: KeyDependencies,
): Promise<IssuedKey> {
  if (kind === "admin" && ttlMs > adminTtlMsMax) {
    const message = `Invalid value for 'ttl': an admin key is valid for ${formatDuration(adminTtlMsMax)} at most.`;
    throw new Fault("invalid_value", { message, param: "ttl" });
  }
  if (admin !== undefined && kind !== "model" && (await issuersOf(admin, keys)).length + 1 >= adminLineageMax) {
    throw new Fault("key_change_refused", {
      message: `Admin keys issue admin keys at most ${adminLineageMax} in a row (adminLineageMax): issue this one from the command line.`,
    });
  }
  const token = mintKeyToken(kind);
  const createdAt = clock.wall();
  const bare = {
    id: token.id,
    version: 0,
    kind,
    name,
    digest: token.digest(peppers.current),
    pepper: peppers.current.fingerprint,
    scopes,
    issuedBy: admin?.id,
    createdAt,
    // Without this limit an admin key would prolong itself by issuing its successor.
    expiresAt: Math.min(createdAt + ttlMs, admin !== undefined && kind === "admin" ? admin.expiresAt : Infinity),
  };
  const record = keyRecord.parse(withTerms(bare, terms));
  assertNeeds(record);
  const entry = {
    at: createdAt,
    ...actor,
    action: "issued",
    key: token.id,
    name,
    detail: { ...shownTerms(record), team: record.team },
  } as const;
  const newer = newTerms(record).filter(isNew);
  if (newer.length > 0) assertRead(newer, await keys.gateways());
  await keys.issue(record, entry);
  return { token, record };
}
