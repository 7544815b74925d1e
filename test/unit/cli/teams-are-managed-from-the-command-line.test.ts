import { expect, test } from "vitest";
import { signedIn } from "#shared/records/change-person.ts";
import { commandLine } from "./command-line.ts";

/** A command line on a store with a key and with Anna, who has signed in. */
async function siteWithAnna() {
  const line = await commandLine();
  await line.issue();
  const anna = { issuer: "https://id.example.org", subject: "1", called: "Anna B", email: "anna@example.org" };
  const person = await line.inStore((store) =>
    signedIn({ ...anna, claims: [] }, { ...store, actor: { by: "OpenID Connect" } }),
  );
  const said: string[] = [];
  const say = async (run: (...args: string[]) => Promise<{ out: string }>, ...args: string[]) =>
    void said.push((await run(...args)).out);
  return { ...line, person, said, say };
}

test("trunkline teams create, change, add, drop, list, show and remove say what they did", async () => {
  const { teams, keys, said, say, person } = await siteWithAnna();
  await teams("create", "research", "--scopes", "llama*", "--rpm", "60", "--own-days", "30", "--own-rpm", "5");
  await say(teams, "change", "research", "--rpm", "none", "--budget", "2M/month", "--claims", "physics,chemistry");
  await say(teams, "add", "research", "ben@example.org");
  await say(teams, "add", "research", "anna@example.org");
  await say(teams, "list");
  await say(teams, "show", "research");
  await say(teams, "drop", "research", person.name.slice(0, 8));
  await say(teams, "drop", "research", "ben@example.org");
  await keys("issue", "--name", "batch", "--team", "research", "--json");
  await say(teams, "remove", "research", "--with-keys");
  await say(teams, "list");
  const dates = ["created             2026-01-01 00:00:00Z", "changed             2026-01-01 00:00:00Z"];
  const fields = [
    "team                research",
    "scopes              llama*",
    "machines            any",
    "limits              2M/month",
    "own keys            10 a member, for 30 days at most",
    "limits of own keys  5 rpm",
    "claims              physics, chemistry",
  ];
  expect(said.join("")).toBe(
    [
      ...fields,
      ...dates,
      "ben@example.org is a member from the first sign-in on of the team research",
      "anna@example.org is a member of the team research",
      "team      scopes  limits    own keys    claims              by hand  invited",
      "research  llama*  2M/month  10 for 30d  physics, chemistry        1        1",
      ...fields,
      `member              Anna B (${person.name.slice(0, 12)})`,
      "invited             ben@example.org",
      ...dates,
      `${person.name.slice(0, 8)} is no member of the team research any more`,
      "ben@example.org is no member of the team research any more",
      "research is no team any more; keys revoked with it: 1",
      "",
    ].join("\n"),
  );
});

test("trunkline people lists, limits, disables and forgets a person by e-mail address or by the beginning of an id", async () => {
  const { people, teams, said, say, person } = await siteWithAnna();
  await teams("create", "research");
  await teams("add", "research", "anna@example.org");
  const id = person.name.slice(0, 12);
  await people("change", id, "--rpm", "60");
  await say(people, "disable", "anna@example.org");
  await say(people, "list");
  await say(people, "enable", id);
  await say(people, "remove", "anna@example.org");
  expect(said.join("")).toBe(
    [
      "Anna B is disabled",
      "id            name    e-mail            teams     limits  state     signed in",
      `${id}  Anna B  anna@example.org  research  60 rpm  disabled  2026-01-01 00:00:00Z`,
      "Anna B is enabled",
      `${id} is forgotten; keys revoked: 0`,
      "",
    ].join("\n"),
  );
  await expect(people("show", "anna@example.org")).rejects.toThrow("Nobody has the e-mail address anna@example.org");
  await expect(people("show", "xyz")).rejects.toThrow("Nobody has an id that begins with 'xyz'");
});

test("a key of a team shows it and is listed by it, and a key of an unknown team is refused", async () => {
  const { teams, keys, json } = await siteWithAnna();
  await teams("create", "research");
  await json("issue", "--name", "batch", "--team", "research");
  expect(await json("list", "--team", "research")).toMatchObject([{ name: "batch", team: "research" }]);
  expect((await keys("list")).out).toMatch(/^\S+ +batch .* research /m);
  await expect(json("issue", "--name", "batch", "--team", "others")).rejects.toThrow("There is no team others");
});
