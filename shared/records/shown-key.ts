import { z } from "zod";
import { isoTime } from "../process/clock.ts";
import { durationPattern, formatDuration, readDuration } from "../process/quantities.ts";
import { type ShownTerms, type TermRow, termRows } from "../admin/key-terms.ts";
import { type KeyRecord, keyState, keyStates, termSchema } from "./key-record.ts";
import { personId, teamName } from "../protocol/identifiers.ts";
import { keyId, keyKinds } from "../keys/key-token.ts";

const time = z.iso.datetime();

type ShownShape = {
  readonly [Name in keyof ShownTerms]-?: undefined extends ShownTerms[Name]
    ? z.ZodOptional<z.ZodType<ShownTerms[Name]>>
    : z.ZodType<ShownTerms[Name]>;
};
const termShape = Object.fromEntries(
  termRows.map(([name, row]) => {
    const about = wordsOf(row);
    if (row.kind === "mark" || row.leftOut)
      return [name, termSchema(row).optional().describe(`${about} Absent otherwise.`)];
    return [name, termSchema(row).nullable().describe(about)];
  }),
) as ShownShape;

/** Returns the description of a term for programs. */
export function wordsOf(row: TermRow): string {
  if (row.kind === "mark") return `${row.usual ? "False" : "True"} to ${row.words}.`;
  const words = `${row.words.charAt(0).toUpperCase()}${row.words.slice(1)}`;
  return `${words}; ${row.zero ? `0 for ${row.zero}, ` : ""}null for ${row.without ?? "none"}.`;
}

/** A key as the command line and the admin API show it: everything but its secret. */
export const shownKey = z.strictObject({
  id: keyId,
  name: z.string(),
  kind: z.enum(keyKinds),
  scopes: z.array(z.string()).readonly(),
  ...termShape,
  team: teamName.optional().describe("The team whose terms hold for it too; absent for a key of the site."),
  person: personId.optional().describe("The id of the person whose key it is; absent otherwise."),
  expires_at: time,
  state: z.enum(keyStates),
  issued_by: keyId.optional().describe("The admin key that issued it over the admin API; absent for the command line."),
  created_at: time,
  disabled_at: time.nullable(),
  revoked_at: time.nullable(),
  /** The end of validity of each replaced secret that is still valid. */
  old_secrets_valid_until: z.array(time),
});
export type ShownKey = z.infer<typeof shownKey>;

export function showKey(record: KeyRecord, nowMs: number): ShownKey {
  const { id, name, team, person, issuedBy, createdAt, disabledAt, revokedAt, replaced = [] } = record;
  return {
    id,
    name,
    ...shownTerms(record),
    ...(team !== undefined && { team }),
    ...(person !== undefined && { person }),
    state: keyState(record, nowMs),
    ...(issuedBy === undefined ? {} : { issued_by: issuedBy }),
    created_at: isoTime(createdAt),
    disabled_at: disabledAt === undefined ? null : isoTime(disabledAt),
    revoked_at: revokedAt === undefined ? null : isoTime(revokedAt),
    old_secrets_valid_until: replaced.filter((each) => each.validUntil > nowMs).map((each) => isoTime(each.validUntil)),
  };
}

/** Returns the terms of a key with its kind, its scopes and its end. Answers leave out a mark that it has not. */
export function shownTerms({ kind, scopes, expiresAt, ...record }: KeyRecord) {
  const stored: Readonly<Record<string, unknown>> = { ...record, ...record.limits };
  const terms = termRows.flatMap(([name, row]) => {
    const value = stored[row.stored] ?? (row.kind === "mark" || row.leftOut ? undefined : null);
    return value === undefined ? [] : [[name, value]];
  });
  return { kind, scopes, ...(Object.fromEntries(terms) as ShownTerms), expires_at: isoTime(expiresAt) };
}

export const durationMsMax = 3_650 * 86_400_000;

/** Parses a duration in whole units into milliseconds: `90d`, `12h`, `30m`, `45s`, `500ms`. Zero is allowed. */
export const durationOrNone = z
  .string()
  .regex(durationPattern, "must be a whole number with a unit, such as 90d, 12h, 30m, 45s or 500ms")
  .transform(readDuration)
  .refine((ms) => ms <= durationMsMax, `must be at most ${formatDuration(durationMsMax)}`);

export const duration = durationOrNone.refine((ms) => ms > 0, "must be longer than nothing");
