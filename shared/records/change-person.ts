import type { z } from "zod";
import type { KeyId } from "../keys/key-token.ts";
import { dayMs } from "../process/clock.ts";
import { changeLimits, type givenLimits } from "./book-limits.ts";
import { bindInvited, dropMember, revokeAll, type TeamDependencies } from "./change-team.ts";
import { changeKey } from "./change-key.ts";
import { assertKnown, findRecord, type RecordChanged, removeRecord, setRecord } from "./change-record.ts";
import { personForm, personIdOf, type PersonRecord, personRecord, printOf } from "./person-record.ts";
import { isMember } from "./team-record.ts";

type PersonChanged = RecordChanged<PersonRecord>;

/** A person as the OpenID provider has proved them. */
export interface ProvedPerson {
  readonly issuer: string;
  readonly subject: string;
  /** The provider's words for the person, on one line. */
  readonly called: string;
  /** The e-mail address, if the provider has verified it. */
  readonly email?: string | undefined;
  /** The values of the claim `TRUNKLINE_OIDC_CLAIM`. */
  readonly claims: readonly string[];
}

/** A sign-in is noted when something has changed since the last one, or after this time. */
const signInNotedAfterMs = dayMs / 24;

/**
 * Makes or updates a person at a sign-in: binds an invited e-mail address, finds the teams by the claim, and revokes the keys of
 * teams that the person has lost. A disabled person stays as they were, which the caller judges by `disabledAt`.
 */
export async function signedIn(proved: ProvedPerson, dependencies: TeamDependencies): Promise<PersonRecord> {
  const { teams, keys } = dependencies;
  const { issuer, subject, called, claims } = proved;
  const id = personIdOf(issuer, subject);
  const email = personRecord.shape.email.safeParse(proved.email).data;
  const held = new Set(claims);
  // The cut may leave half of a character, which goes too.
  const plain = called.slice(0, 100).replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "");
  const told = { called: plain || printOf(id), email, claims: [] as string[] };
  const change = async (before: PersonRecord | undefined, at: number): Promise<Partial<PersonRecord>> => {
    if (before?.disabledAt !== undefined) return {};
    const named = (await teams.list()).flatMap((team) => team.claims);
    told.claims = [...new Set(named)].filter((value) => held.has(value)).sort();
    const isNoted = before !== undefined && at < before.signedInAt + signInNotedAfterMs;
    const isSame = JSON.stringify({ ...told, ...before }) === JSON.stringify({ ...told, ...before, ...told });
    if (isNoted && isSame) return {};
    return { issuer, subject, ...told, signedInAt: at };
  };
  const { record } = await setRecord(personForm, { name: id, action: "person_signed_in" }, change, dependencies);
  if (record.disabledAt !== undefined) return record;
  await bindInvited(record, dependencies);
  const mine = new Set((await teams.list()).filter((team) => isMember(record, team)).map(({ name }) => name));
  const all = await keys.list();
  await revokeAll(
    all.filter(({ kind, person, team = "" }) => person === id && kind === "model" && !mine.has(team)),
    dependencies,
  );
  return record;
}

/**
 * True for a person who is known, or whom a team expects by a claim or by an invited address. Others leave no record: anybody may
 * have an account at a public provider.
 */
export async function isExpected(
  { issuer, subject, email: told = "", claims }: ProvedPerson,
  { people, teams }: Pick<TeamDependencies, "people" | "teams">,
): Promise<boolean> {
  if ((await people.find(personIdOf(issuer, subject))) !== undefined) return true;
  const [email, held] = [told.toLowerCase(), new Set(claims)];
  const all = await teams.list();
  return all.some((team) => team.invited.includes(email) || team.claims.some((value) => held.has(value)));
}

/** Sets the limits of a person for every gateway. An omitted limit stays as it is; null takes it away. */
export function setPerson(
  id: string,
  given: z.output<z.ZodObject<typeof givenLimits>>,
  dependencies: TeamDependencies,
): Promise<PersonChanged> {
  const change = (before: PersonRecord | undefined) => ({
    limits: changeLimits(assertKnown(personForm, id, before).limits, given),
  });
  return setRecord(personForm, { name: id }, change, dependencies);
}

/** Refuses the keys of a person until they are enabled, or accepts them again. Their keys for the admin API follow. */
export async function enablePerson(
  id: string,
  isEnabled: boolean,
  dependencies: TeamDependencies,
): Promise<PersonChanged> {
  const action = isEnabled ? "enabled" : "disabled";
  const change = (before: PersonRecord | undefined, at: number) => {
    const { disabledAt } = assertKnown(personForm, id, before);
    if (isEnabled === (disabledAt === undefined)) return {};
    return isEnabled ? { disabledAt: undefined, enabledAt: at } : { disabledAt: at };
  };
  const changed = await setRecord(personForm, { name: id, action: `person_${action}` }, change, dependencies);
  const own = (await dependencies.keys.list()).filter(({ person, kind }) => person === id && kind !== "model");
  for (const key of own) await changeKey(key.id, { action }, dependencies);
  return changed;
}

/** Forgets a person: revokes their keys, and removes them from their teams. Their sums stay under their id. */
export async function removePerson(
  id: string,
  dependencies: TeamDependencies,
): Promise<{ readonly revoked: readonly KeyId[] }> {
  const { teams, keys } = dependencies;
  await findRecord(personForm, id, dependencies);
  const revoked = await revokeAll(
    (await keys.list()).filter(({ person }) => person === id),
    dependencies,
  );
  for (const { name, members } of await teams.list())
    if (members.includes(id)) await dropMember(name, { person: id }, dependencies);
  await removeRecord(personForm, id, dependencies);
  return { revoked };
}
