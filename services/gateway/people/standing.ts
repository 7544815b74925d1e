import { Fault } from "#shared/fault/fault.ts";
import { dayMs } from "#shared/process/clock.ts";
import { type Book, booksOf } from "#shared/records/book.ts";
import type { KeyLimits, KeyRecord } from "#shared/records/key-record.ts";
import { commonScopes } from "#shared/records/match-scope.ts";
import type { PersonRecord } from "#shared/records/person-record.ts";
import { isMember, type TeamRecord } from "#shared/records/team-record.ts";
import type { Standing } from "../keys/authenticate.ts";

/** The records of a key's team and person; undefined where it has none, or the record is gone. */
export interface KeyPeople {
  readonly team: TeamRecord | undefined;
  readonly person: PersonRecord | undefined;
}

/** Returns why a valid key is refused for the sake of its team or person; undefined if it is not. */
export function refusalOf(
  key: Pick<KeyRecord, "team" | "person">,
  { team, person }: KeyPeople,
  { nowMs, memberMs }: { readonly nowMs: number; readonly memberMs: number },
): Fault | undefined {
  if (key.team !== undefined && team === undefined)
    return refused(`The team ${key.team} of this API key was removed. Ask an admin of this site for another key.`);
  if (key.person === undefined) return undefined;
  if (person === undefined)
    return refused("The person of this API key is not known any more. Sign in again, and make another key.");
  if (person.disabledAt !== undefined)
    return refused("The person of this API key is disabled for now. Ask an admin of this site.");
  if (team !== undefined && !isMember(person, team))
    return refused(
      `The person of this API key is no member of the team ${team.name} any more. Make a key of another team.`,
    );
  if (nowMs < person.signedInAt + memberMs) return undefined;
  const days = memberMs / dayMs;
  const message = `This API key ends ${days} ${days === 1 ? "day" : "days"} after the last sign-in of its person (TRUNKLINE_MEMBER_DAYS). Sign in again, and it works again.`;
  return new Fault("key_expired", { message });
}

function refused(message: string): Fault {
  return new Fault("key_invalid", { message });
}

/** Returns a key with the least of its own, its person's and its team's terms, and the books that its requests are admitted to. */
export function standingOf(key: KeyRecord, { team, person }: KeyPeople): Standing {
  const books = [...booksOf(key), ...bookOf("person", person), ...bookOf("team", team)];
  if (team === undefined) return { key, books };
  const { machines = team.machines } = key;
  const allowed = machines?.filter((machine) => team.machines?.includes(machine) ?? true);
  return { key: { ...key, scopes: commonScopes(key.scopes, team.scopes), machines: allowed }, books };
}

interface Limited {
  readonly name: string;
  readonly limits?: KeyLimits | undefined;
}

/** The books of records. All keys of a team share one object, which ends with the version of the record. */
const books = new WeakMap<Limited, readonly Book[]>();

function bookOf(kind: "person" | "team", record: (Limited & Partial<PersonRecord>) | undefined): readonly Book[] {
  if (record?.limits === undefined) return [];
  const known = books.get(record);
  if (known !== undefined) return known;
  const { name, limits, email, called = name } = record;
  const made = [{ id: `${kind}:${name}`, limits, noun: `The ${kind} ${email ?? called}` }];
  books.set(record, made);
  return made;
}
