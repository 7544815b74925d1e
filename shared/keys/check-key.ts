import { judgeKey, type KeyVerdict } from "./judge-key.ts";
import type { KeyStore } from "./key-store.ts";
import type { KeyToken } from "./key-token.ts";
import type { Peppers } from "./peppers.ts";

/** What the store says a key is worth. A store that does not answer is a Fault and never a verdict. */
export async function checkKey(check: {
  readonly token: KeyToken;
  readonly keys: Pick<KeyStore, "find">;
  readonly peppers: Peppers;
  readonly nowMs: number;
}): Promise<KeyVerdict> {
  const { token, keys, peppers, nowMs } = check;
  const found = await keys.find(token.id);
  return judgeKey({
    found,
    digests: peppers.digestsOf(token),
    knowsPepper: (fingerprint) => peppers.knows(fingerprint),
    nowMs,
  });
}
