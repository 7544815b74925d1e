import { changeKey, type KeyChanged } from "./change-key.ts";
import type { KeyMeans } from "./issue-key.ts";
import { mintKeyToken, type KeyId, type KeyKind, type KeyToken } from "./key-token.ts";

export const defaultGraceMs = 86_400_000;

/**
 * Gives a key another secret; its id, its terms and its usage stay. The token is shown to its holder once. `kind` is
 * the kind that the caller expects. A record alone does not prove its kind: a writer of the store could have changed a
 * model key into an admin key. The new secret would then make it an admin key.
 */
export async function rotateKey(
  rotation: { readonly id: KeyId; readonly graceMs: number; readonly kind?: KeyKind | undefined },
  means: KeyMeans,
): Promise<{ readonly changed: KeyChanged; readonly token: KeyToken | undefined }> {
  const { id, graceMs } = rotation;
  const found = await means.keys.find(id);
  const kind = found.kind === "record" ? found.record.kind : "model";
  if (rotation.kind !== undefined && rotation.kind !== kind) {
    const reason = `is of kind ${kind} in the store, and not of kind ${rotation.kind}: if you know that it is, name its kind`;
    return { changed: { outcome: "refused", reason }, token: undefined };
  }
  const token = mintKeyToken(kind, id);
  const { current } = means.peppers;
  const secret = { digest: token.digest(current), pepper: current.fingerprint };
  const changed = await changeKey(id, { action: "rotated", secret, graceMs }, means);
  return { changed, token: changed.outcome === "changed" ? token : undefined };
}
