import type { z } from "zod";
import { Fault } from "../fault/fault.ts";
import type { KeyId } from "../keys/key-token.ts";
import { changeLimits } from "./book-limits.ts";
import { changeKey } from "./change-key.ts";
import { type IssuedKey, issueKey, type KeyDependencies, type NewKey } from "./issue-key.ts";
import type { KeyRecord } from "./key-record.ts";
import {
  assertKnown,
  findRecord,
  type RecordChanged,
  type RecordSite,
  removeRecord,
  setRecord,
} from "./change-record.ts";
import type { KeyStore } from "./key-store.ts";
import { personForm, type PersonRecord, type PersonStore } from "./person-record.ts";
import {
  type givenTeam,
  isMember,
  membersByHandMax,
  newTeam,
  teamForm,
  type TeamRecord,
  type TeamStore,
} from "./team-record.ts";

export interface TeamDependencies extends RecordSite {
  readonly teams: TeamStore;
  readonly people: PersonStore;
  readonly keys: KeyStore;
}

type TeamChanged = RecordChanged<TeamRecord>;
type GivenTeam = z.output<z.ZodObject<typeof givenTeam>>;

/** Makes a team, or changes the fields that are given of one that there is, for every gateway. */
export function setTeam(
  name: string,
  given: GivenTeam & { readonly isNew: boolean },
  dependencies: TeamDependencies,
): Promise<TeamChanged> {
  const change = (before: TeamRecord | undefined): Partial<TeamRecord> => {
    if (before !== undefined && given.isNew)
      throw refusal(`There is a team ${name} already: change it, or choose another name.`);
    const was = given.isNew ? newTeam : assertKnown(teamForm, name, before);
    const { own_keys: keys = was.own.keys, own_days: days = was.own.days, own_limits: limits = {} } = given;
    return {
      ...was,
      scopes: given.scopes ?? was.scopes,
      machines: given.machines === undefined ? was.machines : (given.machines ?? undefined),
      limits: changeLimits(was.limits, given),
      own: { keys, days, limits: changeLimits(was.own.limits, limits) },
      claims: given.claims ?? was.claims,
    };
  };
  return setRecord(teamForm, { name }, change, dependencies);
}

/** A person by their id, or a verified e-mail address that somebody signs in with. */
export type Member = { readonly person: string } | { readonly email: string };

/** Adds a member by hand. An address that one known person has means that person. */
export function addMember(name: string, member: Member, dependencies: TeamDependencies): Promise<TeamChanged> {
  const change = async (before: TeamRecord | undefined): Promise<Partial<TeamRecord>> => {
    const team = assertKnown(teamForm, name, before);
    const person = await findMember(member, dependencies);
    const email = "email" in member ? member.email : "";
    if (person === undefined ? team.invited.includes(email) : team.members.includes(person.name)) return {};
    const [list, added] = person === undefined ? (["invited", email] as const) : (["members", person.name] as const);
    if (team[list].length >= membersByHandMax)
      throw refusal(
        `The team ${name} has ${membersByHandMax} of these already (membersByHandMax): use an OpenID claim.`,
      );
    return { [list]: [...team[list], added] };
  };
  return setRecord(teamForm, { name, action: "team_member_added" }, change, dependencies);
}

/** Drops a member who was added by hand. Their keys of the team are refused from the next request on. */
export function dropMember(name: string, member: Member, dependencies: TeamDependencies): Promise<TeamChanged> {
  const change = async (before: TeamRecord | undefined): Promise<Partial<TeamRecord>> => {
    const team = assertKnown(teamForm, name, before);
    if ("email" in member && team.invited.includes(member.email))
      return { invited: team.invited.filter((each) => each !== member.email) };
    const person = await findMember(member, dependencies);
    if (person !== undefined && team.members.includes(person.name))
      return { members: team.members.filter((each) => each !== person.name) };
    if (person !== undefined && isMember(person, team))
      throw refusal(
        `A claim of the provider makes this person a member of the team ${name}: change it there, or the claims of the team.`,
      );
    throw refusal(
      `This person is no member of the team ${name} and was not invited: \`trunkline teams show ${name}\` lists them.`,
    );
  };
  return setRecord(teamForm, { name, action: "team_member_dropped" }, change, dependencies);
}

/** Makes a person who signs in with a verified e-mail address a member of the teams that have invited it, for good. */
export async function bindInvited(
  { name: id, email }: Pick<PersonRecord, "name" | "email">,
  dependencies: TeamDependencies,
): Promise<void> {
  if (email === undefined) return;
  for (const { name, invited } of await dependencies.teams.list()) {
    if (!invited.includes(email)) continue;
    const change = (before: TeamRecord | undefined): Partial<TeamRecord> => {
      const team = assertKnown(teamForm, name, before);
      // Another person may have been bound meanwhile.
      if (!team.invited.includes(email)) return {};
      const members = [...new Set([...team.members, id])];
      return { members, invited: team.invited.filter((each) => each !== email) };
    };
    await setRecord(teamForm, { name, action: "team_member_added" }, change, dependencies);
  }
}

/** Issues a key. One whose team was removed meanwhile is taken back: it would work again in another team of that name. */
export async function issueInTeam(
  wish: NewKey,
  site: KeyDependencies & Pick<TeamDependencies, "teams">,
): Promise<IssuedKey> {
  const issued = await issueKey(wish, site);
  if (wish.team === undefined) return issued;
  try {
    await findRecord(teamForm, wish.team, site);
  } catch (error) {
    await changeKey(issued.record.id, { action: "revoked" }, site);
    throw error;
  }
  return issued;
}

/** Removes a team with its keys. Refuses while keys of it work, unless `withKeys` is true. */
export async function removeTeam(
  name: string,
  { withKeys }: { readonly withKeys: boolean },
  dependencies: TeamDependencies,
): Promise<{ readonly revoked: readonly KeyId[] }> {
  const { keys, clock } = dependencies;
  await findRecord(teamForm, name, dependencies);
  const keysOfTeam = async () => (await keys.list()).filter(({ team }) => team === name);
  const own = await keysOfTeam();
  const working = own.filter(({ expiresAt, revokedAt }) => revokedAt === undefined && clock.wall() < expiresAt);
  if (working.length > 0 && !withKeys)
    throw refusal(
      `Keys of the team ${name} work: ${working.length}. Revoke them, or remove the team with its keys (\`--with-keys\`).`,
    );
  const revoked = await revokeAll(own, dependencies);
  await removeRecord(teamForm, name, dependencies);
  const issuedMeanwhile = await revokeAll(await keysOfTeam(), dependencies);
  return { revoked: [...revoked, ...issuedMeanwhile] };
}

/** Revokes those of these keys that are not revoked, and returns their ids. */
export async function revokeAll(
  records: readonly KeyRecord[],
  dependencies: Pick<TeamDependencies, "keys" | "clock" | "actor">,
): Promise<readonly KeyId[]> {
  const ids = records.filter(({ revokedAt }) => revokedAt === undefined).map(({ id }) => id);
  for (const id of ids) await changeKey(id, { action: "revoked" }, dependencies);
  return ids;
}

async function findMember(member: Member, dependencies: TeamDependencies): Promise<PersonRecord | undefined> {
  if ("person" in member) return findRecord(personForm, member.person, dependencies);
  const [person, another] = (await dependencies.people.list()).filter(({ email }) => email === member.email);
  if (another !== undefined)
    throw refusal(`Several people have this e-mail address: name one by an id of \`trunkline people list\`.`);
  return person;
}

function refusal(message: string): Fault {
  return new Fault("team_change_refused", { message });
}
