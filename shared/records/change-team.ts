import type { z } from "zod";
import { Fault } from "../fault/fault.ts";
import type { Clock } from "../process/clock.ts";
import type { KeyId } from "../keys/key-token.ts";
import type { Actor, AuditAction } from "./audit-entry.ts";
import { changeLimits } from "./book-limits.ts";
import { changeKey } from "./change-key.ts";
import type { KeyRecord } from "./key-record.ts";
import { type KeyStore, retryConflicts } from "./key-store.ts";
import { type PersonRecord, type PersonStore, printOf } from "./person-record.ts";
import { type RecordReplaced, replaceRecord } from "./replace-record.ts";
import {
  type givenTeam,
  isMember,
  membersByHandMax,
  newTeam,
  showTeam,
  type TeamRecord,
  teamRecord,
  teamsMax,
  type TeamStore,
} from "./team-record.ts";

export interface TeamDependencies {
  readonly teams: TeamStore;
  readonly people: PersonStore;
  readonly keys: KeyStore;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
}

type TeamChanged = RecordReplaced<TeamRecord>;
type GivenTeam = z.output<z.ZodObject<typeof givenTeam>>;

/** Makes a team, or changes the fields that are given of one that there is, for every gateway. */
export function setTeam(
  name: string,
  given: GivenTeam & { readonly isNew: boolean },
  dependencies: TeamDependencies,
): Promise<TeamChanged> {
  return replaceTeam(name, "team_set", dependencies, async (before, at) => {
    if (before === undefined && !given.isNew) throw teamUnknown(name);
    if (before !== undefined && given.isNew)
      throw refusal(`There is a team ${name} already: change it, or choose another name.`);
    if (before === undefined && (await dependencies.teams.list()).length >= teamsMax)
      throw refusal(`There are ${teamsMax} teams already (teamsMax): remove one first.`);
    const was: TeamRecord = before ?? { ...newTeam, name, version: 1, createdAt: at, changedAt: at };
    const { own_keys: keys = was.own.keys, own_days: days = was.own.days, own_limits: limits = {} } = given;
    return teamRecord.parse({
      ...was,
      scopes: given.scopes ?? was.scopes,
      machines: given.machines === undefined ? was.machines : (given.machines ?? undefined),
      limits: changeLimits(was.limits, given),
      own: { keys, days, limits: changeLimits(was.own.limits, limits) },
      claims: given.claims ?? was.claims,
    });
  });
}

/** A person by their id, or a verified e-mail address that somebody signs in with. */
export type Member = { readonly person: string } | { readonly email: string };

/** Adds a member by hand. An address that one known person has means that person. */
export function addMember(name: string, member: Member, dependencies: TeamDependencies): Promise<TeamChanged> {
  return replaceTeam(name, "team_member_added", dependencies, async (before) => {
    const team = known(name, before);
    const person = await findMember(member, dependencies);
    const email = "email" in member ? member.email : "";
    if (person === undefined ? team.invited.includes(email) : team.members.includes(person.name)) return team;
    const [list, added] = person === undefined ? (["invited", email] as const) : (["members", person.name] as const);
    if (team[list].length >= membersByHandMax)
      throw refusal(
        `The team ${name} has ${membersByHandMax} of these already (membersByHandMax): use an OpenID claim.`,
      );
    return { ...team, [list]: [...team[list], added] };
  });
}

/** Drops a member who was added by hand. Their keys of the team are refused from the next request on. */
export function dropMember(name: string, member: Member, dependencies: TeamDependencies): Promise<TeamChanged> {
  return replaceTeam(name, "team_member_dropped", dependencies, async (before) => {
    const team = known(name, before);
    if ("email" in member && team.invited.includes(member.email))
      return { ...team, invited: team.invited.filter((each) => each !== member.email) };
    const person = await findMember(member, dependencies);
    if (person !== undefined && team.members.includes(person.name))
      return { ...team, members: team.members.filter((each) => each !== person.name) };
    if (person !== undefined && isMember(person, team))
      throw refusal(
        `A claim of the provider makes this person a member of the team ${name}: change it there, or the claims of the team.`,
      );
    throw refusal(
      `This person is no member of the team ${name} and was not invited: \`trunkline teams show ${name}\` lists them.`,
    );
  });
}

/** Makes a person who signs in with a verified e-mail address a member of the teams that have invited it, for good. */
export async function bindInvited(
  { name: id, email }: Pick<PersonRecord, "name" | "email">,
  dependencies: TeamDependencies,
): Promise<void> {
  if (email === undefined) return;
  for (const { name, invited } of await dependencies.teams.list()) {
    if (!invited.includes(email)) continue;
    await replaceTeam(name, "team_member_added", dependencies, async (before) => {
      const team = known(name, before);
      // Another person may have been bound meanwhile.
      if (!team.invited.includes(email)) return team;
      const members = [...new Set([...team.members, id])];
      return { ...team, members, invited: team.invited.filter((each) => each !== email) };
    });
  }
}

/** Removes a team with its keys. Refuses while keys of it work, unless `withKeys` is true. */
export async function removeTeam(
  name: string,
  { withKeys }: { readonly withKeys: boolean },
  dependencies: TeamDependencies,
): Promise<{ readonly revoked: readonly KeyId[] }> {
  const { teams, keys, clock, actor } = dependencies;
  known(name, await teams.find(name));
  const own = (await keys.list()).filter(({ team }) => team === name);
  const working = own.filter(({ expiresAt, revokedAt }) => revokedAt === undefined && clock.wall() < expiresAt);
  if (working.length > 0 && !withKeys)
    throw refusal(
      `Keys of the team ${name} work: ${working.length}. Revoke them, or remove the team with its keys (\`--with-keys\`).`,
    );
  const revoked = await revokeAll(own, dependencies);
  const attempt = async () => {
    const record = known(name, await teams.find(name));
    const entry = { at: clock.wall(), ...actor, action: "team_removed", team: name, name } as const;
    return (await teams.remove(record, entry)) === "written" ? record : "conflict";
  };
  await retryConflicts(attempt, "The team was changed at the same time. Try again.");
  return { revoked };
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

export function teamUnknown(name: string): Fault {
  const message = `There is no team ${name}: \`trunkline teams list\` shows all.`;
  return new Fault("team_not_found", { message, param: "team" });
}

function known(name: string, record: TeamRecord | undefined): TeamRecord {
  if (record === undefined) throw teamUnknown(name);
  return record;
}

async function findMember(member: Member, { people }: TeamDependencies): Promise<PersonRecord | undefined> {
  if ("person" in member) {
    const person = await people.find(member.person);
    if (person === undefined) throw personUnknown(member.person);
    return person;
  }
  const [person, another] = (await people.list()).filter(({ email }) => email === member.email);
  if (another !== undefined)
    throw refusal(`Several people have this e-mail address: name one by an id of \`trunkline people list\`.`);
  return person;
}

export function personUnknown(id: string): Fault {
  const message = `There is no person ${printOf(id)}: \`trunkline people list\` shows all.`;
  return new Fault("person_not_found", { message, param: "person" });
}

function refusal(message: string): Fault {
  return new Fault("team_change_refused", { message });
}

function replaceTeam(
  name: string,
  action: AuditAction,
  { teams: store, keys, clock, actor }: TeamDependencies,
  change: (before: TeamRecord | undefined, at: number) => Promise<TeamRecord>,
): Promise<TeamChanged> {
  const describe = async (before: TeamRecord | undefined, at: number) => {
    const after = await change(before, at);
    const [now, was] = [after, before].map((record) => record && detailOf(record));
    const isSame = JSON.stringify(now) === JSON.stringify(was) && action === "team_set";
    const detail = { ...now, ...(was && { was }) };
    return { after: isSame && before ? before : after, entry: { action, team: name, name, detail } };
  };
  return replaceRecord(name, describe, { store, keys, clock, actor });
}

/** Returns a team for the trail, without the names of people. */
function detailOf(record: TeamRecord): Readonly<Record<string, unknown>> {
  const { team: _, created_at: __, changed_at: ___, own_limits: own, members, invited, ...shown } = showTeam(record);
  const limits = Object.entries(own).map(([limit, value]) => [`own_${limit}`, value]);
  return { ...shown, ...Object.fromEntries(limits), members: members.length, invited: invited.length };
}
