import type { KeyStore } from "./key-store.ts";
import type { KeyRecord } from "./key-record.ts";
import type { KeyId } from "../keys/key-token.ts";
import type { AuditAction } from "./audit-entry.ts";

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
  {
    admin,
    record,
    change,
  }: { readonly admin: KeyRecord; readonly record: KeyRecord; readonly change: { readonly action: AuditAction } },
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
