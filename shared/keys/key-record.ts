import { randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { keyId } from "./key-token.ts";
import { keyDigest, pepperFingerprint, type KeyDigest } from "./pepper.ts";
import { scopes } from "./scope.ts";

export const keyNameCharactersMax = 100;

/** What people call a key, for the operator's eyes only. */
export const keyName = z
  .string()
  .min(1, "must not be empty")
  .max(keyNameCharactersMax, `must have at most ${keyNameCharactersMax} characters`)
  .regex(/^[^\p{C}\p{Zl}\p{Zp}]*$/u, "must be printable, on one line");

const wallMs = z.int().nonnegative();

/**
 * What is known of a key; times are milliseconds since 1970. Strict on purpose: a field that this version does not
 * know may be a restriction that a newer one has set, so such a record is refused rather than read without it.
 */
export const keyRecord = z.strictObject({
  id: keyId,
  name: keyName,
  digest: keyDigest,
  /** The pepper that the digest was made with. */
  pepper: pepperFingerprint,
  scopes,
  createdAt: wallMs,
  expiresAt: wallMs,
  revokedAt: wallMs.optional(),
});
export type KeyRecord = Readonly<z.infer<typeof keyRecord>>;

/** What remains of a key that was never revoked, for good, so that its holder can always be told that it expired. */
export const keyTombstone = z.strictObject({ digest: keyDigest, expiresAt: wallMs });
export type KeyTombstone = Readonly<z.infer<typeof keyTombstone>>;

export type FoundKey =
  | { readonly kind: "record"; readonly record: KeyRecord }
  | { readonly kind: "tombstone"; readonly tombstone: KeyTombstone }
  | { readonly kind: "absent" };

export type KeyState = "valid" | "expired" | "revoked";

/** Revocation is the last word on a key: one that also expired stays revoked. */
export function keyState(record: KeyRecord, nowMs: number): KeyState {
  if (record.revokedAt !== undefined) return "revoked";
  return nowMs < record.expiresAt ? "valid" : "expired";
}

export type KeyVerdict =
  | { readonly outcome: "valid"; readonly record: KeyRecord }
  | { readonly outcome: "expired" }
  | { readonly outcome: "invalid" };

/**
 * Says what a key is worth. Only who holds the right secret is told that it expired; everybody else learns nothing.
 * The comparison takes the same time for every wrong digest, and is made for unknown keys too.
 */
export function judge(key: {
  readonly found: FoundKey;
  readonly digest: KeyDigest;
  readonly nowMs: number;
}): KeyVerdict {
  const rightSecret = timingSafeEqual(keptDigest(key.found), Buffer.from(key.digest, "hex"));
  if (!rightSecret) return { outcome: "invalid" };
  switch (key.found.kind) {
    case "absent":
      return { outcome: "invalid" };
    case "tombstone":
      return { outcome: key.nowMs < key.found.tombstone.expiresAt ? "invalid" : "expired" };
    case "record": {
      const state = keyState(key.found.record, key.nowMs);
      if (state === "valid") return { outcome: "valid", record: key.found.record };
      return { outcome: state === "expired" ? "expired" : "invalid" };
    }
  }
}

const digestOfNobody = randomBytes(32);

function keptDigest(found: FoundKey): Buffer {
  switch (found.kind) {
    case "absent":
      return digestOfNobody;
    case "tombstone":
      return Buffer.from(found.tombstone.digest, "hex");
    case "record":
      return Buffer.from(found.record.digest, "hex");
  }
}
