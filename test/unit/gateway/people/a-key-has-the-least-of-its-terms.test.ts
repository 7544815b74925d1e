import { expect, test } from "vitest";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { PersonRecord } from "#shared/records/person-record.ts";
import type { TeamRecord } from "#shared/records/team-record.ts";
import { refusalOf, standingOf } from "../../../../services/gateway/people/standing.ts";
import { Standings } from "../../../../services/gateway/people/standings.ts";
import { keyOf } from "../keys/keys-of-a-test.ts";

const dayMs = 86_400_000;
const id = "a".repeat(64);
const named = { version: 1, createdAt: 0, changedAt: 0 };
const teamOf = (fields: Partial<TeamRecord> = {}): TeamRecord => ({
  ...named,
  name: "physics",
  scopes: ["*"],
  own: { keys: 10, days: 90 },
  claims: [],
  members: [id],
  invited: [],
  ...fields,
});
const personOf = (fields: Partial<PersonRecord> = {}): PersonRecord => ({
  ...named,
  name: id,
  issuer: "https://id",
  subject: "1",
  called: "Anna",
  claims: [],
  signedInAt: 0,
  ...fields,
});

test.each([
  ["of the site", {}, {}, undefined],
  ["of a team", { team: "physics" }, { team: teamOf() }, undefined],
  ["of a member by hand", { team: "physics", person: id }, { team: teamOf(), person: personOf() }, undefined],
  [
    "of a member by the claim",
    { team: "physics", person: id },
    { team: teamOf({ members: [], claims: ["a", "b"] }), person: personOf({ claims: ["b"] }) },
    undefined,
  ],
  ["of a team that was removed", { team: "physics" }, {}, ["key_invalid", /The team physics .* was removed/]],
  ["of a person who was removed", { person: id, team: "physics" }, { team: teamOf() }, ["key_invalid", /not known/]],
  [
    "of a disabled person",
    { team: "physics", person: id },
    { team: teamOf(), person: personOf({ disabledAt: 1 }) },
    ["key_invalid", /is disabled for now/],
  ],
  [
    "of a person who left the team",
    { team: "physics", person: id },
    { team: teamOf({ members: [], claims: ["a"] }), person: personOf({ claims: ["b"] }) },
    ["key_invalid", /no member of the team physics any more/],
  ],
] as const)("a key %s is judged by the records of its team and person", (_, key, records, refusal) => {
  const fault = refusalOf(
    key,
    { team: undefined, person: undefined, ...records },
    { nowMs: dayMs, memberMs: dayMs * 30 },
  );
  expect(fault?.code).toBe(refusal?.[0]);
  if (refusal !== undefined) expect(fault?.message).toMatch(refusal[1]);
});

test("a person's key ends so many days after the last sign-in, and the refusal says how it works again", () => {
  const key = { team: "physics", person: id };
  const records = { team: teamOf(), person: personOf({ signedInAt: 5 }) };
  const at = (nowMs: number) => refusalOf(key, records, { nowMs, memberMs: 30 * dayMs });
  expect(at(30 * dayMs + 4)).toBeUndefined();
  expect(at(30 * dayMs + 5)).toMatchObject({
    code: "key_expired",
    message: expect.stringMatching(/30 days .* Sign in again/),
  });
});

test("the books of a key are its own, its person's and its team's, in this order, where each has limits", () => {
  const { record } = keyOf({ limits: { requestsPerMinute: 3 }, team: "physics", person: id });
  const team = teamOf({ limits: { requestsPerMinute: 1 } });
  const person = personOf({ limits: { requestsPerMinute: 2 }, email: "anna@example.org" });
  expect(standingOf(record, { team, person }).books).toEqual([
    { id: record.id, limits: { requestsPerMinute: 3 }, noun: "This key" },
    { id: `person:${id}`, limits: { requestsPerMinute: 2 }, noun: "The person anna@example.org" },
    { id: "team:physics", limits: { requestsPerMinute: 1 }, noun: "The team physics" },
  ]);
  const other = keyOf({ team: "physics" }).record;
  const { books } = standingOf(other, { team, person: undefined });
  expect(books[0]).toBe(standingOf(record, { team, person }).books[2]);
  expect(standingOf(other, { team: teamOf(), person: undefined }).books).toEqual([]);
});

test.each([
  [undefined, undefined, undefined],
  [["attic"], undefined, ["attic"]],
  [undefined, ["attic"], ["attic"]],
  [["attic", "loft"], ["loft", "cellar"], ["loft"]],
  [["attic"], ["cellar"], []],
] as const)("a key for the machines %j in a team for %j may use %j", (own, ofTeam, both) => {
  const { record } = keyOf({ ...(own && { machines: own }), team: "physics" });
  const team = teamOf(ofTeam && { machines: ofTeam });
  expect(standingOf(record, { team, person: undefined }).key.machines).toEqual(both);
});

function standingsOf(
  store: { teams: TeamRecord[]; people: PersonRecord[] },
  { wall = () => 0, cut = () => undefined }: { wall?: () => number; cut?: (person: string) => void } = {},
) {
  const recordsIn = <Kept extends { readonly name: string }>(all: () => Kept[]) => ({
    list: async () => all(),
    find: async (name: string) => all().find((each) => each.name === name),
  });
  return new Standings({
    store: { teams: recordsIn(() => store.teams), people: recordsIn(() => store.people) },
    running: { cutPerson: cut },
    memberMs: 30 * dayMs,
    clock: { wall },
    log: { info: () => undefined, warn: () => undefined },
  });
}

test("a key keeps its standing until a record of its team or person has changed", async () => {
  const store = { teams: [teamOf({ limits: { concurrency: 2 } })], people: [personOf()] };
  const standings = standingsOf(store);
  await standings.load();
  const key: KeyRecord = keyOf({ team: "physics", person: id }).record;
  const before = standings.of(key);
  await standings.load();
  expect(standings.of(key)).toBe(before);
  store.teams = [teamOf({ version: 2, limits: { concurrency: 1 } })];
  await standings.teams.load();
  expect((await standings.of(key)).books).toMatchObject([{ limits: { concurrency: 1 } }]);
  store.teams = [];
  await standings.teams.load();
  await expect(standings.of(key)).rejects.toThrow(/was removed/);
});

test("a key is not refused for a team that this gateway has not heard of, and a refusal asks the store once a second", async () => {
  const store = { teams: [teamOf()], people: [personOf()] };
  let wallMs = 0;
  const standings = standingsOf(store, { wall: () => wallMs });
  const key = keyOf({ team: "physics", person: id }).record;
  expect(await standings.of(key)).toMatchObject({ books: [] });
  store.teams = [];
  await standings.teams.load();
  await expect(standings.of(key)).rejects.toThrow(/was removed/);
  store.teams = [teamOf()];
  await expect(standings.of(key)).rejects.toThrow(/was removed/);
  wallMs = 1_000;
  expect(await standings.of(key)).toMatchObject({ books: [] });
});

test("a person who was disabled stays so when the store falls back to an older copy of itself", async () => {
  const cut: string[] = [];
  let wallMs = 0;
  const store = { teams: [teamOf()], people: [personOf({ version: 2, disabledAt: 1 })] };
  const standings = standingsOf(store, { wall: () => (wallMs += 1_000), cut: (person) => cut.push(person) });
  await standings.load();
  expect(cut).toEqual([id]);
  store.people = [personOf()];
  await standings.load();
  const key = keyOf({ team: "physics", person: id }).record;
  await expect(standings.of(key)).rejects.toThrow(/is disabled/);
  store.people = [personOf({ version: 3 })];
  await standings.load();
  expect(standings.of(key)).toMatchObject({ books: [] });
});
