import { z } from "zod";
import { machineName } from "../protocol/identifiers.ts";
import { keyLimits } from "./key-limits.ts";
import { keyId, keyKinds } from "./key-token.ts";
import { keyDigest, pepperFingerprint } from "./pepper.ts";
import { scopes } from "./scope.ts";

export const keyNameCharactersMax = 100;
export const machinesPerKeyMax = 64;
/** Maximum number of replaced secrets in a record. Beyond it the oldest is dropped, and then counts as unknown. */
export const replacedSecretsMax = 8;

/** The name that people give a key. Only operators see it. */
export const keyName = z
  .string()
  .min(1, "must not be empty")
  .max(keyNameCharactersMax, `must have at most ${keyNameCharactersMax} characters`)
  .regex(/^[^\p{C}\p{Zl}\p{Zp}]*$/u, "must be printable, on one line");

/** The machines that a key is bound to. The key can use no other machine. */
export const boundMachines = z
  .array(machineName)
  .min(1, "must name at least one machine")
  .max(machinesPerKeyMax, `must be at most ${machinesPerKeyMax} machines`)
  .readonly();

const wallMs = z.int().nonnegative();

/** A stored secret: its digest, and the fingerprint of the pepper that made the digest. */
const keptSecret = { digest: keyDigest, pepper: pepperFingerprint };

/**
 * The record of a key; times are milliseconds since 1970. The schema is strict on purpose: an unknown field may be a
 * restriction that a newer version has set. A record with an unknown field is therefore refused.
 */
export const keyRecord = z.strictObject({
  id: keyId,
  /** Increases with every change, so that a writer detects a concurrent change of the record. */
  version: z.int().nonnegative().default(0),
  kind: z.enum(keyKinds).default("model"),
  name: keyName,
  ...keptSecret,
  /** Replaced secrets, the latest first. Each is valid until its own `validUntil`. */
  replaced: z
    .array(z.strictObject({ ...keptSecret, validUntil: wallMs }))
    .max(replacedSecretsMax)
    .readonly()
    .optional(),
  scopes,
  machines: boundMachines.optional(),
  limits: keyLimits.optional(),
  /** The admin key that issued this key over the admin API. */
  issuedBy: keyId.optional(),
  createdAt: wallMs,
  expiresAt: wallMs,
  disabledAt: wallMs.optional(),
  revokedAt: wallMs.optional(),
});
export type KeyRecord = Readonly<z.infer<typeof keyRecord>>;

/**
 * The permanent remainder of a key that was never revoked. With it the holder can always be told that the key expired.
 */
export const keyTombstone = z.strictObject({ digest: keyDigest, expiresAt: wallMs });
export type KeyTombstone = Readonly<z.infer<typeof keyTombstone>>;

export type FoundKey =
  | { readonly kind: "record"; readonly record: KeyRecord }
  | { readonly kind: "tombstone"; readonly tombstone: KeyTombstone }
  | { readonly kind: "absent" };

export const keyStates = ["valid", "disabled", "expired", "revoked"] as const;
export type KeyState = (typeof keyStates)[number];

/** Returns the state of a key. A revoked key that has also expired is `revoked`. */
export function keyState(record: KeyRecord, nowMs: number): KeyState {
  if (record.revokedAt !== undefined) return "revoked";
  if (nowMs >= record.expiresAt) return "expired";
  return record.disabledAt === undefined ? "valid" : "disabled";
}
