import { hash } from "node:crypto";
import { z } from "zod";
import { personId } from "../protocol/identifiers.ts";
import { isoTime } from "../process/clock.ts";
import { oneLine } from "./key-record.ts";
import type { RecordStore } from "./key-store.ts";
import { type RecordForm, recordFields } from "./record-form.ts";
import { bookLimits, shownLimits, showLimits } from "./book-limits.ts";
import { claimValue, emailAddress, isMember, type TeamRecord } from "./team-record.ts";

/** Maximum number of people that a site remembers. Every gateway holds all of them. */
export const peopleMax = 20_000;
export const subjectCharactersMax = 1_000;

const wallMs = z.int().nonnegative();

/** The record of a person who has signed in by OpenID Connect; times are milliseconds since 1970. Strict, as that of a team. */
export const personRecord = z.strictObject({
  /** The digest of the issuer and the subject (`personIdOf`). */
  name: personId,
  issuer: z.string().max(1_000),
  subject: z.string().max(subjectCharactersMax),
  /** The words of the provider, for show alone: they change, and may be those of another person later. */
  called: oneLine(100),
  /** The verified e-mail address of the last sign-in, for show alone. */
  email: emailAddress.optional(),
  /** The values of the OpenID claim at the last sign-in, as far as they made a member of a team. */
  claims: z.array(claimValue).readonly(),
  limits: bookLimits.optional(),
  signedInAt: wallMs,
  disabledAt: wallMs.optional(),
  /** When an admin enabled them again. Sessions from before it have ended. */
  enabledAt: wallMs.optional(),
  ...recordFields,
});
export type PersonRecord = Readonly<z.output<typeof personRecord>>;

export type PersonStore = RecordStore<PersonRecord>;

/** Returns the id of a person: the digest of the issuer and the subject, which is one person's alone. */
export function personIdOf(issuer: string, subject: string): string {
  return hash("sha256", `${issuer} ${subject}`);
}

/** Returns the beginning of a person's id, as lists and the trail show it. It names a person whose name was forgotten. */
export function printOf(id: string): string {
  return id.slice(0, 12);
}

const time = z.iso.datetime();

/** A person as the command line and the admin API show them. */
export const shownPerson = z.strictObject({
  person: personId,
  name: z.string().describe("The provider's words at the last sign-in."),
  email: z.string().nullable().describe("The verified e-mail address of the last sign-in."),
  issuer: z.string(),
  subject: z.string(),
  teams: z.array(z.string()).readonly(),
  ...shownLimits,
  state: z.enum(["active", "disabled"]),
  signed_in_at: time,
  disabled_at: time.nullable(),
  created_at: time,
});
export type ShownPerson = z.output<typeof shownPerson>;

export function showPerson(record: PersonRecord, teams: readonly TeamRecord[]): ShownPerson {
  const { name, called, email = null, issuer, subject, limits, signedInAt, disabledAt, createdAt } = record;
  return {
    person: name,
    name: called,
    email,
    issuer,
    subject,
    teams: teams.filter((team) => isMember(record, team)).map((team) => team.name),
    ...showLimits(limits),
    state: disabledAt === undefined ? "active" : "disabled",
    signed_in_at: isoTime(signedInAt),
    disabled_at: disabledAt === undefined ? null : isoTime(disabledAt),
    created_at: isoTime(createdAt),
  };
}

/** The trail names a person by the print alone, so that it knows nobody whom the site has forgotten. */
export const personForm = {
  at: "people",
  noun: "person",
  about: "person",
  schema: personRecord,
  max: peopleMax,
  full: `There are ${peopleMax} people already (peopleMax): remove some first.`,
  unknown: (id) => `There is no person ${printOf(id)}: \`trunkline people list\` shows all.`,
  detail: ({ limits }) => showLimits(limits),
  titled: printOf,
} as const satisfies RecordForm<PersonRecord>;
