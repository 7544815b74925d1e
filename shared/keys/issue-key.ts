import { z } from "zod";
import type { Clock } from "../process/clock.ts";
import { durationMsMax } from "./duration.ts";
import { keyName, type KeyRecord } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";
import { mintKeyToken, type KeyId, type KeyToken } from "./key-token.ts";
import type { Pepper } from "./pepper.ts";
import { scopes } from "./scope.ts";

/** What whoever issues a key may choose about it. */
export const newKey = z.strictObject({
  name: keyName,
  scopes,
  ttlMs: z.int().min(1).max(durationMsMax),
});
export type NewKey = Readonly<z.infer<typeof newKey>>;

export interface IssuedKey {
  readonly id: KeyId;
  /** To be shown to its holder once; nobody can find it out again. */
  readonly token: KeyToken;
  readonly record: KeyRecord;
}

export async function issueKey(
  key: NewKey,
  means: { readonly keys: Pick<KeyStore, "issue">; readonly pepper: Pepper; readonly clock: Clock },
): Promise<IssuedKey> {
  const { name, scopes: granted, ttlMs } = newKey.parse(key);
  const token = mintKeyToken();
  const createdAt = means.clock.wall();
  const record: KeyRecord = {
    id: token.id,
    name,
    digest: token.digest(means.pepper),
    pepper: means.pepper.fingerprint,
    scopes: granted,
    createdAt,
    expiresAt: createdAt + ttlMs,
  };
  await means.keys.issue(record);
  return { id: token.id, token, record };
}
