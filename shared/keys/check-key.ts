import { judgeKey, type KeyVerdict } from "./judge-key.ts";
import type { FoundKey } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";
import type { KeyToken } from "./key-token.ts";
import type { Peppers } from "./peppers.ts";

/**
 * Looks up a key in the store and returns the verdict on it. A store that does not answer causes a Fault, never a
 * verdict.
 */
export async function checkKey(check: {
  readonly token: KeyToken;
  readonly keys: Pick<KeyStore, "find">;
  readonly peppers: Peppers;
  readonly nowMs: number;
}): Promise<KeyVerdict> {
  return judgeToken({ ...check, found: await check.keys.find(check.token.id) });
}

/**
 * Judges a token against its record. A digest covers the text of a token, including the prefix that names the kind. A
 * record of another kind was altered by a writer who does not know the pepper. The key is then not accepted.
 */
export function judgeToken(check: {
  readonly found: FoundKey;
  readonly token: KeyToken;
  readonly peppers: Peppers;
  readonly nowMs: number;
}): KeyVerdict {
  const { found, token, peppers, nowMs } = check;
  const verdict = judgeKey({
    found,
    digests: peppers.digestsOf(token),
    knowsPepper: (fingerprint) => peppers.knows(fingerprint),
    nowMs,
  });
  return verdict.outcome === "valid" && verdict.proven.record.kind !== token.kind ? { outcome: "altered" } : verdict;
}
