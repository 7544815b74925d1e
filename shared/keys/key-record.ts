import { z } from "zod";
import { machineName } from "../protocol/machine-name.ts";
import { keyLimits } from "./key-limits.ts";
import { keyId, keyKinds } from "./key-token.ts";
import { keyDigest, pepperFingerprint } from "./pepper.ts";
import { scopes } from "./scope.ts";

export const keyNameCharactersMax = 100;
export const machinesPerKeyMax = 64;
/** Above this the secret that was replaced first is forgotten, and counts as one that never was. */
export const replacedSecretsMax = 8;

/** What people call a key, for the operator's eyes only. */
export const keyName = z
  .string()
  .min(1, "must not be empty")
  .max(keyNameCharactersMax, `must have at most ${keyNameCharactersMax} characters`)
  .regex(/^[^\p{C}\p{Zl}\p{Zp}]*$/u, "must be printable, on one line");

/** The machines that a key is bound to; for it there are no others. */
export const boundMachines = z
  .array(machineName)
  .min(1, "must name at least one machine")
  .max(machinesPerKeyMax, `must be at most ${machinesPerKeyMax} machines`)
  .readonly();

const wallMs = z.int().nonnegative();

/** A secret as a store keeps it, and the pepper that the digest was made with. */
const keptSecret = { digest: keyDigest, pepper: pepperFingerprint };

/**
 * What is known of a key; times are milliseconds since 1970. Strict on purpose: a field that this version does not
 * know may be a restriction that a newer one has set, so such a record is refused rather than read without it.
 */
export const keyRecord = z.strictObject({
  id: keyId,
  /** Counts up with every change, so that no change is made on a record that somebody else has changed meanwhile. */
  version: z.int().nonnegative().default(0),
  kind: z.enum(keyKinds).default("model"),
  name: keyName,
  ...keptSecret,
  /** Former secrets, the latest first; each is good until its own end. */
  replaced: z
    .array(z.strictObject({ ...keptSecret, validUntil: wallMs }))
    .max(replacedSecretsMax)
    .readonly()
    .optional(),
  scopes,
  machines: boundMachines.optional(),
  limits: keyLimits.optional(),
  createdAt: wallMs,
  expiresAt: wallMs,
  disabledAt: wallMs.optional(),
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

export const keyStates = ["valid", "disabled", "expired", "revoked"] as const;
export type KeyState = (typeof keyStates)[number];

/** Revocation is the last word on a key: one that also expired stays revoked. */
export function keyState(record: KeyRecord, nowMs: number): KeyState {
  if (record.revokedAt !== undefined) return "revoked";
  if (nowMs >= record.expiresAt) return "expired";
  return record.disabledAt === undefined ? "valid" : "disabled";
}
