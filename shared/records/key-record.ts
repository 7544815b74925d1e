import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { modelIdCharactersMax } from "../protocol/model.ts";
import { machineName, personId, teamName } from "../protocol/identifiers.ts";
import {
  budgetPeriods,
  type GivenTerms,
  limitRows,
  type LimitName,
  type Rows,
  type TermName,
  type TermRow,
  termRows,
  type TermValue,
} from "../admin/key-terms.ts";
import { keyId, keyKinds } from "../keys/key-token.ts";
import { keyDigest, pepperFingerprint } from "../keys/pepper.ts";

/** Maximum number of tokens of a key in a calendar day or month (UTC), prompts and answers together. */
export const tokenBudget = z.strictObject({
  tokens: z.int().min(1).max(1_000_000_000_000),
  per: z.enum(budgetPeriods),
});
export type TokenBudget = Readonly<z.infer<typeof tokenBudget>>;

/** Maximum of what the requests of a key cost in a calendar day or month (UTC). */
export const moneyBudget = z.strictObject({ millionths: z.int().min(1), per: z.enum(budgetPeriods) });
export type MoneyBudget = Readonly<z.infer<typeof moneyBudget>>;

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

/** Returns the schema of a term that is set. A mark has one value. */
export function termSchema(row: TermRow): z.ZodType {
  if (row.kind === "mark") return z.literal(!row.usual);
  if (row.kind === "machines") return boundMachines;
  if (row.kind === "money") return moneyBudget;
  if (row.kind === "choice") return z.enum(row.choices ?? [], `must be one of ${row.choices?.join(", ")}`);
  return row.kind === "budget"
    ? tokenBudget
    : z
        .int()
        .min(row.min ?? 1)
        .max(row.max ?? Number.MAX_SAFE_INTEGER);
}

/** The schemas of some terms, under the names of the record. */
type StoredShape<Name extends TermName> = {
  readonly [Each in Name as Rows[Each]["stored"]]: z.ZodOptional<z.ZodType<TermValue<Each>>>;
};
const shapeOf = (rows: typeof termRows): object =>
  Object.fromEntries(rows.map(([, row]) => [row.stored, termSchema(row).optional()]));

/** The limits of a key; an absent field means no limit. Limits hold over all gateways together. */
export const keyLimits = z.strictObject(shapeOf(limitRows) as StoredShape<LimitName>);
export type KeyLimits = Readonly<z.infer<typeof keyLimits>>;
const otherTerms = shapeOf(termRows.filter((each) => !limitRows.includes(each))) as StoredShape<
  Exclude<TermName, LimitName>
>;

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
  ...otherTerms,
  limits: keyLimits.optional(),
  /** The admin key that issued this key over the admin API. */
  issuedBy: keyId.optional(),
  /** The team whose terms hold for this key too. */
  team: teamName.optional(),
  /** The id of the person whose key it is: of kind model to call models as a member of the team, else to sign in by OpenID Connect. */
  person: personId.optional(),
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

/** The terms of a key under the names of its record. An omitted term stays as it is; null removes the term. */
export type NewTerms = StoredTerms & {
  readonly name?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly person?: string | undefined;
  /** Only for a new key. */
  readonly team?: string | undefined;
};
type StoredTerms = {
  readonly limits?: { readonly [Limit in keyof KeyLimits]?: KeyLimits[Limit] | null } | undefined;
} & { readonly [Name in Exclude<TermName, LimitName> as Rows[Name]["stored"]]?: GivenTerms[Name] };

/** Returns the terms that an issuer gives, under the names of the record. */
export function storedTerms(given: GivenTerms): StoredTerms {
  const named = (rows: typeof termRows) => Object.fromEntries(rows.map(([name, { stored }]) => [stored, given[name]]));
  return { ...named(termRows.filter((each) => !limitRows.includes(each))), limits: named(limitRows) };
}

/** Returns a record with these terms. A term at its usual value is removed. */
export function withTerms(record: KeyRecord, { limits: given, ...terms }: NewTerms): KeyRecord {
  const others = setOf({ ...record, ...setOf(terms, undefined) }, null);
  for (const [, row] of termRows)
    if (row.kind === "mark" && others[row.stored] === row.usual) delete others[row.stored];
  return { ...others, limits: withLimits(record.limits, given) } as KeyRecord;
}

/** Returns limits with those that are given in place of theirs. Undefined if none is left. */
export function withLimits(limits: KeyLimits | undefined, given: StoredTerms["limits"]): KeyLimits | undefined {
  const after = setOf({ ...limits, ...setOf(given, undefined) }, null);
  return Object.keys(after).length === 0 ? undefined : after;
}

/** Throws the fault of a record with a term that means nothing without another one. */
export function assertNeeds(record: KeyRecord): void {
  const terms = termRows.filter(([, { stored }]) => Reflect.get(record, stored) !== undefined);
  for (const [param, { needs }] of terms) {
    if (needs === undefined || terms.some(([name]) => name === needs)) continue;
    throw new Fault("invalid_value", { message: `'${param}' needs '${needs}': set both, or neither.`, param });
  }
}

/** Returns the fields of an object without those that have one value. */
function setOf(fields: object | undefined, left: null | undefined): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== left));
}

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

/** A record whose holder has presented a valid secret, and the end of that secret's validity. */
export interface ProvenKey {
  readonly record: KeyRecord;
  /** Milliseconds since 1970; `Infinity` for the current secret. */
  readonly secretUntil: number;
}

export type KeyVerdict =
  | { readonly outcome: "valid"; readonly proven: ProvenKey }
  | { readonly outcome: "expired" }
  /** The key is still valid with another secret. The grace period of this secret is over. */
  | { readonly outcome: "replaced" }
  | { readonly outcome: "disabled" }
  | { readonly outcome: "invalid" }
  /** The kind in the record differs from the kind in the token. */
  | { readonly outcome: "altered" }
  /** The stored digests were made with a pepper that this process does not have. */
  | { readonly outcome: "unjudged" };

/** Judges a key whose secret was proved before. Only its state and the time remain to be checked. */
export function judgeProven(proven: ProvenKey, nowMs: number): KeyVerdict {
  const state = keyState(proven.record, nowMs);
  if (state === "revoked") return { outcome: "invalid" };
  if (state !== "valid") return { outcome: state };
  return nowMs < proven.secretUntil ? { outcome: "valid", proven } : { outcome: "replaced" };
}
