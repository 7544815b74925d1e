import { withReplica, writeChange, type KeyChanged } from "./change-key.ts";
import type { KeyMeans } from "./issue-key.ts";
import type { KeyRecord } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";
import type { KeyId } from "./key-token.ts";

export interface Revocation {
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
  means: Omit<KeyMeans, "peppers" | "keys"> & { readonly keys: KeyMeans["keys"] & Pick<KeyStore, "list"> },
): Promise<Revocation> {
  const { id, withIssued } = wish;
  const revocation = { action: "revoked" } as const;
  const changed = await writeChange(id, revocation, means);
  const isAdmin = (changed.outcome === "changed" || changed.outcome === "unchanged") && changed.record.kind === "admin";
  if (!isAdmin) return { changed: await withReplica(changed, revocation, means.keys), revoked: [], stay: [] };
  const family = new Set([id]);
  const revoked: KeyRecord[] = [];
  for (;;) {
    // A key revoked in this round may have issued another key before its revocation. Repeat until there is none.
    const records = await means.keys.list();
    const issued = records.filter(
      (each) => !family.has(each.id) && each.issuedBy !== undefined && family.has(each.issuedBy),
    );
    const goes = issued.filter(({ kind }) => withIssued || kind !== "model");
    if (goes.length === 0) {
      const stay = issued.filter(
        ({ revokedAt, expiresAt }) => revokedAt === undefined && means.clock.wall() < expiresAt,
      );
      return { changed: await withReplica(changed, revocation, means.keys), revoked, stay };
    }
    for (const each of goes) {
      family.add(each.id);
      const { outcome } = await writeChange(each.id, { ...revocation, with: id }, means);
      if (outcome === "changed") revoked.push(each);
    }
  }
}
