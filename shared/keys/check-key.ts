import { judge, type KeyVerdict } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";
import { parseKeyToken } from "./key-token.ts";
import type { Pepper } from "./pepper.ts";

/**
 * From the text that a caller sent to what it is worth. The store is asked at most once, and only by an id whose
 * checksum is right; a store that does not answer is a Fault and never a verdict.
 */
export async function checkKey(check: {
  readonly text: string;
  readonly keys: Pick<KeyStore, "find">;
  readonly pepper: Pepper;
  readonly nowMs: number;
}): Promise<KeyVerdict> {
  const parsed = parseKeyToken(check.text);
  if (parsed.outcome !== "parsed") return { outcome: "invalid" };
  const found = await check.keys.find(parsed.token.id);
  return judge({ found, digest: parsed.token.digest(check.pepper), nowMs: check.nowMs });
}
