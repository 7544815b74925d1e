import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { issueKey } from "#shared/records/issue-key.ts";
import { addMember, dropMember, issueInTeam, removeTeam, setTeam } from "#shared/records/change-team.ts";
import { enablePerson, type ProvedPerson, removePerson, setPerson, signedIn } from "#shared/records/change-person.ts";
import { personIdOf } from "#shared/records/person-record.ts";
import { isMember, type TeamStore } from "#shared/records/team-record.ts";
import { keyState } from "#shared/records/key-record.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { peppers } from "../unit/gateway/keys/keys-of-a-test.ts";
import { issueOn } from "./key-changes.contract.ts";
import { redisPlace, sqlitePlace } from "./key-store-place.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

const issuer = "https://id.example.org";
const anna = { issuer, subject: "1", called: "Anna", email: "anna@example.org", claims: ["physics", "unknown"] };

describe.each([
  ["Redis", () => redisPlace(server.url)],
  ["SQLite", sqlitePlace],
] as const)("teams and people of a site in %s", (_, makePlace) => {
  async function founded() {
    const place = await makePlace();
    const keys = await place.open();
    await issueOn(keys);
    const clock = new TurnableClock({ wallMs: Date.now() });
    const means = { keys, ...(await place.openNamed()), clock, peppers, actor: { by: "the operator" } };
    const signIn = (fields: Partial<ProvedPerson> = {}) => signedIn({ ...anna, ...fields }, means);
    const issue = async (fields: {
      readonly team?: string;
      readonly person?: string;
      readonly kind?: "admin";
      readonly endUsers?: "header";
    }) => (await issueKey({ name: "a key", scopes: ["*"], ttlMs: 1e6, ...fields }, means)).record;
    const stateOf = async ({ id }: { readonly id: Parameters<typeof keys.find>[0] }) => {
      const found = await keys.find(id);
      return found.kind === "record" ? keyState(found.record, clock.wall()) : found.kind;
    };
    const teamsOf = async (person: Awaited<ReturnType<typeof signIn>>) =>
      (await means.teams.list()).filter((team) => isMember(person, team)).map(({ name }) => name);
    return { place, keys, clock, means, signIn, issue, stateOf, teamsOf };
  }

  test("a team is made once, changed in what is named alone, and says in the trail what was changed", async () => {
    const { keys, means } = await founded();
    await setTeam("physics", { isNew: true, scopes: ["llama*"], rpm: 60, own_limits: { rpm: 5 } }, means);
    await expect(setTeam("physics", { isNew: true }, means)).rejects.toMatchObject({ code: "team_change_refused" });
    await expect(setTeam("others", { isNew: false }, means)).rejects.toMatchObject({ code: "team_not_found" });
    const changed = await setTeam("physics", { isNew: false, rpm: null, machines: ["attic"], own_keys: 2 }, means);
    expect(changed.record).toMatchObject({ scopes: ["llama*"], machines: ["attic"], limits: undefined });
    expect(changed.record.own).toEqual({ keys: 2, days: 90, limits: { requestsPerMinute: 5 } });
    expect((await setTeam("physics", { isNew: false, own_keys: 2 }, means)).outcome).toBe("unchanged");
    expect(await means.teams.find("physics")).toMatchObject({ version: 2, machines: ["attic"] });
    const [, entry] = await keys.log({ entriesMax: 2 });
    expect(entry).toMatchObject({ action: "team_set", team: "physics", by: "the operator" });
    expect(entry?.detail).toMatchObject({ rpm: null, own_keys: 2, own_rpm: 5, was: { rpm: 60, own_keys: 10 } });
  });

  test("a claim makes a member at the sign-in, as long as both the team and the last sign-in have it", async () => {
    const { means, signIn, teamsOf } = await founded();
    await setTeam("physics", { isNew: true, claims: ["physics"] }, means);
    const person = await signIn();
    expect(person).toMatchObject({ name: personIdOf(issuer, "1"), called: "Anna", claims: ["physics"] });
    expect(await teamsOf(person)).toEqual(["physics"]);
    await setTeam("physics", { isNew: false, claims: ["chemistry"] }, means);
    expect(await teamsOf(person)).toEqual([]);
    expect(await teamsOf(await signIn({ claims: ["chemistry"] }))).toEqual(["physics"]);
  });

  test("a sign-in without the claim of a team ends the person's keys of that team, and no others", async () => {
    const { means, signIn, issue, stateOf } = await founded();
    for (const name of ["physics", "chemistry"]) await setTeam(name, { isNew: true, claims: [name] }, means);
    const { name: person } = await signIn({ claims: ["physics", "chemistry"] });
    const lost = await issue({ team: "physics", person });
    const kept = [await issue({ team: "chemistry", person }), await issue({ team: "physics" })] as const;
    await signIn({ claims: ["chemistry"] });
    expect([await stateOf(lost), await stateOf(kept[0]), await stateOf(kept[1])]).toEqual([
      "revoked",
      "valid",
      "valid",
    ]);
  });

  test("an invited e-mail address is bound to the first person who signs in with it, whatever it is later", async () => {
    const { means, signIn, teamsOf } = await founded();
    await setTeam("physics", { isNew: true }, means);
    await addMember("physics", { email: "anna@example.org" }, means);
    expect(await teamsOf(await signIn({ subject: "2", email: undefined }))).toEqual([]);
    expect(await teamsOf(await signIn({ email: "Anna@Example.org" }))).toEqual(["physics"]);
    expect(await teamsOf(await signIn({ subject: "3" }))).toEqual([]);
    const renamed = await signIn({ email: "anna.b@example.org" });
    expect(await teamsOf(renamed)).toEqual(["physics"]);
    expect(renamed.email).toBe("anna.b@example.org");
    await dropMember("physics", { email: "anna.b@example.org" }, means);
    expect(await teamsOf(renamed)).toEqual([]);
  });

  test("two people who sign in at once with one invited address do not both become members", async () => {
    const { means, signIn, teamsOf } = await founded();
    await setTeam("physics", { isNew: true }, means);
    await addMember("physics", { email: "anna@example.org" }, means);
    const people = await Promise.all(["1", "2", "3"].map((subject) => signIn({ subject })));
    const teams = await Promise.all(people.map(teamsOf));
    expect(teams.flat()).toEqual(["physics"]);
  });

  test("a member of whom the provider says so is not dropped by hand, and the refusal names the remedy", async () => {
    const { means, signIn } = await founded();
    await setTeam("physics", { isNew: true, claims: ["physics"] }, means);
    const { name: person } = await signIn();
    await expect(dropMember("physics", { person }, means)).rejects.toThrow(
      /A claim of the provider .* change it there/,
    );
    await expect(dropMember("physics", { email: "b@example.org" }, means)).rejects.toThrow(/was not invited/);
  });

  test("a team whose keys work is removed only with them", async () => {
    const { means, issue, stateOf } = await founded();
    await setTeam("physics", { isNew: true }, means);
    const key = await issue({ team: "physics" });
    await expect(removeTeam("physics", { withKeys: false }, means)).rejects.toThrow(/work: 1\. .*--with-keys/);
    expect(await stateOf(key)).toBe("valid");
    expect(await removeTeam("physics", { withKeys: true }, means)).toEqual({ revoked: [key.id] });
    expect([await stateOf(key), await means.teams.list()]).toEqual(["revoked", []]);
  });

  test("a key that is issued while its team is removed does not work in a new team of that name", async () => {
    const { means, issue, stateOf } = await founded();
    const { teams } = means;
    await setTeam("physics", { isNew: true }, means);
    const removing: TeamStore = {
      list: () => teams.list(),
      find: (name) => teams.find(name),
      write: (record, entry) => teams.write(record, entry),
      async remove(record, entry) {
        await issue({ team: "physics" });
        return teams.remove(record, entry);
      },
    };
    const { revoked } = await removeTeam("physics", { withKeys: false }, { ...means, teams: removing });
    expect(revoked).toHaveLength(1);
    const wish = { name: "later", scopes: ["*"], ttlMs: 1e6, team: "physics" };
    await expect(issueInTeam(wish, means)).rejects.toMatchObject({ code: "team_not_found" });
    await setTeam("physics", { isNew: true }, means);
    const keys = (await means.keys.list()).filter(({ team }) => team === "physics");
    expect(await Promise.all(keys.map(stateOf))).toEqual(["revoked", "revoked"]);
  });

  test("a disabled person is not updated by a sign-in, and their keys for the admin API are disabled too", async () => {
    const { means, signIn, issue, stateOf, clock } = await founded();
    const { name: person, signedInAt } = await signIn();
    const { record: admin } = await issueKey(
      { kind: "admin", name: "Anna's", scopes: ["*"], ttlMs: 1e6, person },
      means,
    );
    const model = await issue({ team: "physics", person });
    await enablePerson(person, false, means);
    expect(await stateOf(admin)).toBe("disabled");
    clock.advance(7_200_000);
    expect(await signIn()).toMatchObject({ disabledAt: expect.any(Number), signedInAt });
    await enablePerson(person, true, means);
    expect((await signIn()).signedInAt).toBe(clock.wall());
    expect(await stateOf(model)).toBe("revoked");
  });

  test("a removed person leaves no name and no e-mail address but those of keys, and no key that works", async () => {
    const { place, means, keys, signIn, issue, stateOf } = await founded();
    await setTeam("physics", { isNew: true, claims: [] }, means);
    const { name: person } = await signIn();
    await addMember("physics", { person }, means);
    await setPerson(person, { rpm: 10 }, means);
    const key = await issue({ team: "physics", person });
    await removePerson(person, means);
    expect(await stateOf(key)).toBe("revoked");
    const { teams, people } = await place.openNamed();
    const left = JSON.stringify([await teams.list(), await people.list(), await keys.log({ entriesMax: 100 })]);
    expect(left).not.toMatch(/Anna|anna/);
    expect(await teams.find("physics")).toMatchObject({ members: [] });
  });

  test("teams, people and keys of teams are refused with the name of a gateway of 0.2.0, and nothing is written", async () => {
    const { place, means, keys, signIn, issue } = await founded();
    await place.noteGateway(`${"a".repeat(22)} 0.2.0 attic`);
    const before = await keys.log({ entriesMax: 100 });
    const refused = /needs version 0\.3\.0 .* the gateway attic runs 0\.2\.0/;
    await expect(setTeam("physics", { isNew: true }, means)).rejects.toThrow(refused);
    await expect(signIn()).rejects.toThrow(refused);
    await expect(issue({ team: "physics" })).rejects.toThrow(refused);
    await expect(issue({ endUsers: "header" })).rejects.toThrow("'end_users' needs version 0.3.0");
    expect([await means.teams.list(), await means.people.list()]).toEqual([[], []]);
    expect(await keys.log({ entriesMax: 100 })).toEqual(before);
  });
});
