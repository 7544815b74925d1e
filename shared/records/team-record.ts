import { z } from "zod";
import { personId, teamName } from "../protocol/identifiers.ts";
import { boundMachines, oneLine, scopes } from "./key-record.ts";
import type { RecordStore } from "./key-store.ts";
import { type NamedRecord, type RecordForm, recordFields, shownTimes, showTimes } from "./record-form.ts";
import { givenLimits, bookLimits, shownLimits, showLimits } from "./book-limits.ts";

/** Maximum number of teams of a site. Every gateway holds all of them. */
export const teamsMax = 1_000;
/** Maximum number of members that were added by hand, and of e-mail addresses that nobody has signed in with yet. */
export const membersByHandMax = 1_000;

/** The value of an OpenID claim, such as the name of a group. */
export const claimValue = oneLine(200);
export const emailAddress = z
  .string()
  .max(254, "must have at most 254 characters")
  .regex(/^[^\s\p{C}@]+@[^\s\p{C}@]+$/u, "must be an e-mail address")
  .toLowerCase();

const ownKeys = z.int().min(0).max(1_000);
const ownDays = z.int().min(1).max(3_650);
const claims = z.array(claimValue).max(64, "must be at most 64 values").readonly();

/**
 * The record of a team. The schema is strict, as that of a key is: an unknown field may
 * be a restriction that a newer version has set.
 */
export const teamRecord = z.strictObject({
  name: teamName,
  scopes,
  machines: boundMachines.optional(),
  limits: bookLimits.optional(),
  /** The keys that a member may make: how many, for how many days, and the limits of each. */
  own: z.strictObject({ keys: ownKeys, days: ownDays, limits: bookLimits.optional() }),
  /** The values of the OpenID claim that make a member. */
  claims,
  /** The members that were added by hand. */
  members: z.array(personId).max(membersByHandMax).readonly(),
  /** Verified e-mail addresses. The first person who signs in with one becomes a member in its place. */
  invited: z.array(emailAddress).max(membersByHandMax).readonly(),
  ...recordFields,
});
export type TeamRecord = Readonly<z.output<typeof teamRecord>>;

export type TeamStore = RecordStore<TeamRecord>;

type NewTeam = Omit<TeamRecord, keyof NamedRecord>;

/** A new team, as far as nothing else is given. */
export const newTeam: NewTeam = { scopes: ["*"], own: { keys: 10, days: 90 }, claims: [], members: [], invited: [] };

/** True if a person is a member: by hand, or by the claim as it was at the last sign-in. */
export function isMember(
  { name: id, claims: held }: { readonly name: string; readonly claims: readonly string[] },
  team: Pick<TeamRecord, "members" | "claims">,
): boolean {
  return team.members.includes(id) || team.claims.some((value) => held.includes(value));
}

/** The fields of a team that an admin gives. In a change, null takes a limit away. */
export const givenTeam = {
  scopes: scopes.optional().describe("The models that keys of the team may call: ids, names or patterns with *."),
  machines: boundMachines.nullish().describe("The machines that may serve them; null for any."),
  ...givenLimits,
  own_keys: ownKeys.optional().describe("The most keys that a member may have."),
  own_days: ownDays.optional().describe("The longest time for which a member's key is valid, in days."),
  own_limits: z.strictObject(givenLimits).optional().describe("The limits of each key that a member makes."),
  claims: claims.optional().describe("The values of the OpenID claim TRUNKLINE_OIDC_CLAIM that make a member."),
};

/** A team as the command line and the admin API show it. */
export const shownTeam = z.strictObject({
  team: teamName,
  scopes: z.array(z.string()).readonly(),
  machines: z.array(z.string()).readonly().nullable(),
  ...shownLimits,
  own_keys: z.int(),
  own_days: z.int(),
  own_limits: z.strictObject(shownLimits).describe("The limits of each key that a member makes."),
  claims: z.array(z.string()).readonly(),
  members: z.array(z.string()).readonly().describe("The members that were added by hand, by their ids."),
  invited: z.array(z.string()).readonly().describe("The e-mail addresses that nobody has signed in with yet."),
  ...shownTimes,
});
export type ShownTeam = z.output<typeof shownTeam>;

export function showTeam(record: TeamRecord): ShownTeam {
  const { name, machines = null, limits, own } = record;
  return {
    team: name,
    scopes: record.scopes,
    machines,
    ...showLimits(limits),
    own_keys: own.keys,
    own_days: own.days,
    own_limits: showLimits(own.limits),
    claims: record.claims,
    members: record.members,
    invited: record.invited,
    ...showTimes(record),
  };
}

/** Returns a team for the trail, without the names of people. */
function detailOf(record: TeamRecord): Readonly<Record<string, unknown>> {
  const { team: _, created_at: __, changed_at: ___, own_limits: own, members, invited, ...shown } = showTeam(record);
  const limits = Object.entries(own).map(([limit, value]) => [`own_${limit}`, value]);
  return { ...shown, ...Object.fromEntries(limits), members: members.length, invited: invited.length };
}

export const teamForm = {
  at: "teams",
  noun: "team",
  about: "team",
  schema: teamRecord,
  max: teamsMax,
  full: `There are ${teamsMax} teams already (teamsMax): remove one first.`,
  unknown: (name) => `There is no team ${name}: \`trunkline teams list\` shows all.`,
  detail: detailOf,
} as const satisfies RecordForm<TeamRecord>;
