import { changeKey, type KeyChanged } from "./change-key.ts";
import type { KeyMeans } from "./issue-key.ts";
import { mintKeyToken, type KeyId, type KeyToken } from "./key-token.ts";

export const defaultGraceMs = 86_400_000;

/** Gives a key another secret; its id, its terms and what it has used stay. The token is to be shown to its holder once. */
export async function rotateKey(
  rotation: { readonly id: KeyId; readonly graceMs: number },
  means: KeyMeans,
): Promise<{ readonly changed: KeyChanged; readonly token: KeyToken | undefined }> {
  const { id, graceMs } = rotation;
  const found = await means.keys.find(id);
  const kind = found.kind === "record" ? found.record.kind : "model";
  const token = mintKeyToken(kind, id);
  const { current } = means.peppers;
  const secret = { digest: token.digest(current), pepper: current.fingerprint };
  const changed = await changeKey(id, { action: "rotated", secret, graceMs }, means);
  return { changed, token: changed.outcome === "changed" ? token : undefined };
}
