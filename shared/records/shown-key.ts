import { z } from "zod";
import { isoTime } from "../process/clock.ts";
import { keyLimits, type KeyRecord, keyState, keyStates, loadsPerMinuteDefault, tokenBudget } from "./key-record.ts";
import { keyId, keyKinds } from "../keys/key-token.ts";

const time = z.iso.datetime();

/** The terms of a key as shown to people and programs. */
const terms = {
  kind: z.enum(keyKinds),
  scopes: z.array(z.string()).readonly(),
  /** Null means all machines. */
  machines: z.array(z.string()).readonly().nullable(),
  rpm: keyLimits.shape.requestsPerMinute.unwrap().nullable(),
  tpm: keyLimits.shape.tokensPerMinute.unwrap().nullable(),
  concurrency: keyLimits.shape.concurrency.unwrap().nullable(),
  budget: tokenBudget.nullable(),
  loads: keyLimits.shape.loadsPerMinute
    .unwrap()
    .optional()
    .describe(
      `Models a minute that may be loaded for it in place of others; 0 for none; ${loadsPerMinuteDefault} if absent.`,
    ),
  external: z.literal(true).optional().describe("True if routes may lead it to external machines; absent otherwise."),
  continues: z
    .literal(false)
    .optional()
    .describe("False if its answers end with their machine; absent if another machine may go on with them."),
  store_responses: z.literal(true).optional().describe("True if its responses are stored; absent otherwise."),
  expires_at: time,
};

/** A key as the command line and the admin API show it: everything but its secret. */
export const shownKey = z.strictObject({
  id: keyId,
  name: z.string(),
  ...terms,
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
  const { id, name, issuedBy, createdAt, disabledAt, revokedAt, replaced = [] } = record;
  return {
    id,
    name,
    ...shownTerms(record),
    state: keyState(record, nowMs),
    ...(issuedBy === undefined ? {} : { issued_by: issuedBy }),
    created_at: isoTime(createdAt),
    disabled_at: disabledAt === undefined ? null : isoTime(disabledAt),
    revoked_at: revokedAt === undefined ? null : isoTime(revokedAt),
    old_secrets_valid_until: replaced.filter((each) => each.validUntil > nowMs).map((each) => isoTime(each.validUntil)),
  };
}

export function shownTerms(record: KeyRecord) {
  const { kind, scopes, machines = null, limits, external, continues, storesResponses, expiresAt } = record;
  return {
    kind,
    scopes,
    machines,
    rpm: limits?.requestsPerMinute ?? null,
    tpm: limits?.tokensPerMinute ?? null,
    concurrency: limits?.concurrency ?? null,
    budget: limits?.budget ?? null,
    ...(limits?.loadsPerMinute !== undefined && { loads: limits.loadsPerMinute }),
    ...(external && { external }),
    ...(continues === false && { continues }),
    ...(storesResponses && { store_responses: storesResponses }),
    expires_at: isoTime(expiresAt),
  };
}

/** Milliseconds of each unit, the largest unit first. */
const unitsMs = new Map([
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
]);

export const durationMsMax = 3_650 * 86_400_000;

/** Parses a duration in whole units into milliseconds: `90d`, `12h`, `30m`, `45s`, `500ms`. Zero is allowed. */
export const durationOrNone = z
  .string()
  .regex(/^\d{1,15}(?:ms|[smhd])$/, "must be a whole number with a unit, such as 90d, 12h, 30m, 45s or 500ms")
  .transform((text) => Number.parseInt(text, 10) * (unitsMs.get(text.replace(/^\d+/, "")) ?? Number.NaN))
  .refine((ms) => ms <= durationMsMax, `must be at most ${formatDuration(durationMsMax)}`);

export const duration = durationOrNone.refine((ms) => ms > 0, "must be longer than nothing");

/** Formats a duration in the largest unit that represents it exactly. */
export function formatDuration(ms: number): string {
  for (const [unit, unitMs] of unitsMs) {
    if (ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  }
  return `${ms}ms`;
}
