import { z } from "zod";
import { modelIdCharactersMax } from "../protocol/model.ts";
import { machineName } from "../protocol/identifiers.ts";
import { keyId, keyKinds } from "../keys/key-token.ts";
import { keyDigest, pepperFingerprint } from "../keys/pepper.ts";

export const budgetPeriods = ["day", "month"] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** Maximum number of tokens of a key in a calendar day or month (UTC), prompts and answers together. */
export const tokenBudget = z.strictObject({
  tokens: z.int().min(1).max(1_000_000_000_000),
  per: z.enum(budgetPeriods),
});
export type TokenBudget = Readonly<z.infer<typeof tokenBudget>>;

/** The limits of a key; an absent field means no limit. Limits hold over all gateways together. */
export const keyLimits = z.strictObject({
  requestsPerMinute: z.int().min(1).max(1_000_000).optional(),
  tokensPerMinute: z.int().min(1).max(1_000_000_000).optional(),
  concurrency: z.int().min(1).max(10_000).optional(),
  budget: tokenBudget.optional(),
  /** Loads that make others leave the memory; zero for none. Absent means `loadsPerMinuteDefault`. */
  loadsPerMinute: z.int().min(0).max(10_000).optional(),
});
/** The loads a minute of a key without a limit for them, on machines whose agent decides what is loaded. */
export const loadsPerMinuteDefault = 6;
export type KeyLimits = Readonly<z.infer<typeof keyLimits>>;

export const scopesPerKeyMax = 64;

/**
 * A pattern of model ids, case-sensitive, in one of three forms. In a glob, each `*` matches any run of characters,
 * also an empty one. `name` matches that id and all its variants `name:…`. `name:variant` matches that id alone. A
 * request for `name:latest` that `name` answers needs a scope for each of the two ids.
 */
export const scope = z
  .string()
  .min(1, "must not be empty; * allows every model")
  .max(modelIdCharactersMax, `must have at most ${modelIdCharactersMax} characters`)
  .regex(/^[^\p{C}\p{Z}]*$/u, "must be printable and without spaces");

export const scopes = z
  .array(scope)
  .min(1, "must name at least one scope; * allows every model")
  .max(scopesPerKeyMax, `must be at most ${scopesPerKeyMax} scopes`)
  .readonly();

const machinesPerKeyMax = 64;
/** Maximum number of replaced secrets in a record. Beyond it the oldest is dropped, and then counts as unknown. */
export const replacedSecretsMax = 8;

/** A text for people, such as a name. */
export const oneLine = (charactersMax: number): z.ZodString =>
  z
    .string()
    .min(1, "must not be empty")
    .max(charactersMax, `must have at most ${charactersMax} characters`)
    .regex(/^[^\p{C}\p{Zl}\p{Zp}]*$/u, "must be printable, on one line");

/** The name that people give a key. Only operators see it. */
export const keyName = oneLine(100);

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
  /** The key may use external machines, by routes that say so. No scope covers them. */
  external: z.literal(true).optional(),
  /** Absent if another machine may go on with an answer of the key whose machine is lost. */
  continues: z.literal(false).optional(),
  /** The store keeps the responses of the key, encrypted, for its next turns. */
  storesResponses: z.literal(true).optional(),
  /** The admin key that issued this key over the admin API. */
  issuedBy: keyId.optional(),
  /** The digest of the issuer and the subject of the person who signs in by OpenID Connect with this key. */
  person: z.string().length(64).optional(),
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
type KeyTombstone = Readonly<z.infer<typeof keyTombstone>>;

export type FoundKey =
  | { readonly kind: "record"; readonly record: KeyRecord }
  | { readonly kind: "tombstone"; readonly tombstone: KeyTombstone }
  | { readonly kind: "absent" };

/** Returns the terms of a record that another one lacks, those of its limits too. */
export function newTerms(after: KeyRecord, before?: KeyRecord): readonly string[] {
  const termsOf = (record?: KeyRecord) => Object.entries({ ...record, ...record?.limits });
  const known = new Set(termsOf(before).flatMap(([term, value]) => (value === undefined ? [] : [term])));
  return termsOf(after).flatMap(([term, value]) => (value === undefined || known.has(term) ? [] : [term]));
}

export const keyStates = ["valid", "disabled", "expired", "revoked"] as const;
export type KeyState = (typeof keyStates)[number];

/** Returns the state of a key. A revoked key that has also expired is `revoked`. */
export function keyState(record: KeyRecord, nowMs: number): KeyState {
  if (record.revokedAt !== undefined) return "revoked";
  if (nowMs >= record.expiresAt) return "expired";
  return record.disabledAt === undefined ? "valid" : "disabled";
}
