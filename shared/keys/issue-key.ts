import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import type { Clock } from "../process/clock.ts";
import type { Actor } from "./audit-entry.ts";
import type { KeyChange } from "./change-key.ts";
import { boundMachines, keyLimits, keyName, keyRecord, type KeyRecord, scopes } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";
import { type KeyId, keyKinds, type KeyToken, mintKeyToken } from "./key-token.ts";
import type { Peppers } from "./pepper.ts";
import { durationMsMax, formatDuration, shownTerms } from "./shown-key.ts";

const dayMs = 86_400_000;

export const defaultTtlMs = 90 * dayMs;
/** Longest validity of an admin key. It is short because an admin key can issue keys of any kind. */
export const adminTtlMsMax = 90 * dayMs;

export const newKey = z
  .strictObject({
    kind: z.enum(keyKinds).default("model"),
    name: keyName,
    scopes,
    ttlMs: z.int().min(1).max(durationMsMax),
    machines: boundMachines.optional(),
    limits: keyLimits.optional(),
    elsewhere: keyRecord.shape.elsewhere,
  })
  .refine(({ kind, ttlMs }) => kind !== "admin" || ttlMs <= adminTtlMsMax, {
    message: `of an admin key must be at most ${formatDuration(adminTtlMsMax)}`,
    path: ["ttlMs"],
  });
export type NewKey = Readonly<z.input<typeof newKey>>;

export interface KeyDependencies {
  readonly keys: Pick<KeyStore, "find" | "issue" | "replace" | "forget"> & Partial<Pick<KeyStore, "awaitReplica">>;
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
  key: NewKey,
  { keys, peppers, clock, actor, admin }: KeyDependencies,
): Promise<IssuedKey> {
  const { kind, name, scopes: granted, ttlMs, machines, limits, elsewhere } = newKey.parse(key);
  if (admin !== undefined && kind !== "model" && (await issuersOf(admin, keys)).length + 1 >= adminLineageMax) {
    throw new Fault("key_change_refused", {
      message: `Admin keys issue admin keys at most ${adminLineageMax} in a row (adminLineageMax): issue this one from the command line.`,
    });
  }
  const token = mintKeyToken(kind);
  const createdAt = clock.wall();
  const record = keyRecord.parse({
    id: token.id,
    version: 0,
    kind,
    name,
    digest: token.digest(peppers.current),
    pepper: peppers.current.fingerprint,
    scopes: granted,
    machines,
    limits: Object.values(limits ?? {}).some((limit) => limit !== undefined) ? limits : undefined,
    elsewhere,
    issuedBy: admin?.id,
    createdAt,
    // Without this limit an admin key would prolong itself by issuing its successor.
    expiresAt: Math.min(createdAt + ttlMs, admin !== undefined && kind === "admin" ? admin.expiresAt : Infinity),
  });
  const entry = { at: createdAt, ...actor, action: "issued", key: token.id, name, detail: shownTerms(record) } as const;
  await keys.issue(record, entry);
  return { token, record };
}

/** Maximum length of a chain of admin keys in which each issued the next, the first key included. */
export const adminLineageMax = 8;

/**
 * Returns the admin keys through which a key was issued, its own issuer first. Empty for a key issued on the command
 * line.
 */
export async function issuersOf(record: KeyRecord, keys: Pick<KeyStore, "find">): Promise<readonly KeyRecord[]> {
  const issuers: KeyRecord[] = [];
  let id = record.issuedBy;
  while (id !== undefined && issuers.length < adminLineageMax) {
    const found = await keys.find(id);
    if (found.kind !== "record") break;
    issuers.push(found.record);
    id = found.record.issuedBy;
  }
  return issuers;
}

/** Returns true if an admin key, or one through which it was issued, is revoked or disabled, or no longer known. */
export async function isTakenBack(id: KeyId, keys: Pick<KeyStore, "find">): Promise<boolean> {
  const found = await keys.find(id);
  if (found.kind !== "record") return true;
  const lineage = [found.record, ...(await issuersOf(found.record, keys))];
  return lineage.some(({ revokedAt, disabledAt }) => (revokedAt ?? disabledAt) !== undefined);
}

/**
 * Returns why an admin key may not make a change, in words that follow «The key …»; undefined when it may. An admin key
 * gives time, secrets and rights only to admin and viewer keys that it issued, directly or through other keys.
 * Otherwise two admin keys could extend each other. The secret of a rotated key would also outlive the admin key that
 * rotated it.
 */
export async function refusalByLineage(
  { admin, record, change }: { readonly admin: KeyRecord; readonly record: KeyRecord; readonly change: KeyChange },
  keys: Pick<KeyStore, "find">,
): Promise<string | undefined> {
  const gives = change.action === "extended" || change.action === "rotated" || change.action === "enabled";
  if (record.kind === "model" || !gives) return undefined;
  if (record.id === admin.id) {
    if (change.action !== "extended") return undefined;
    return "is the admin key of this request, and no admin key extends itself: use `trunkline keys extend`";
  }
  const issuers = await issuersOf(record, keys);
  if (issuers.some(({ id }) => id === admin.id)) return undefined;
  return `is a key for the admin API that this admin key did not issue: use \`trunkline keys\` on the command line`;
}
