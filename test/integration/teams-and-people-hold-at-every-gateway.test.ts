import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { enablePerson, setPerson, signedIn } from "#shared/records/change-person.ts";
import { addMember, dropMember, setTeam } from "#shared/records/change-team.ts";
import type { NewKey } from "#shared/records/issue-key.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { type Endpoint, errorIn, refusalOf } from "../harness/endpoint.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { Operator } from "../harness/operator.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { startTwoGateways, type TwoGateways } from "../harness/two-gateways.ts";
import { until } from "../harness/until.ts";

const hello = { model: "scripted", says: "/script tokens=1" };
const endless = { model: "scripted", says: "/script tokens=100000 delay_ms=20", stream: true };
let names = 0;

const meansOf = ({ store }: Operator) => ({ ...store, clock, actor: { by: "the operator" } });

/** A new team with a member, and the terms of that member's key. */
async function teamWithMember(operator: Operator, terms: Parameters<typeof setTeam>[1] = { isNew: true }) {
  names += 1;
  const [team, subject] = [`team-${names}`, String(names)];
  const means = meansOf(operator);
  await setTeam(team, terms, means);
  const signIn = () => signedIn({ issuer: "https://id", subject, called: "Anna", claims: [] }, means);
  const { name: person } = await signIn();
  await addMember(team, { person }, means);
  const key: Partial<NewKey> = { team, person };
  return { team, person, key, means };
}

const outcome = async (endpoint: Endpoint): Promise<string> => {
  const response = await endpoint.chat(hello);
  return response.status === 200 ? "ok" : String((await refusalOf(response)).code);
};
const untilOutcome = (endpoints: readonly Endpoint[], wanted: string): Promise<true> =>
  until(async () => (await Promise.all(endpoints.map(outcome))).every((each) => each === wanted), {
    what: `${wanted} at every gateway`,
    timeoutMs: 1_000,
  });

describe("two gateways", () => {
  let site: TwoGateways;
  beforeAll(async () => {
    site = await startTwoGateways();
    // The first key founds the store.
    await site.issue();
  });
  afterAll(() => site[Symbol.asyncDispose]());

  test("a key may call what both it and its team allow, at every gateway, and the list of models has no other", async () => {
    const { key } = await teamWithMember(site.operator, { isNew: true, scopes: ["scripted", "other*"] });
    const { endpoints } = await site.issue({ ...key, scopes: ["*"] });
    const { endpoints: narrow } = await site.issue({ ...key, scopes: ["scripted:plain"] });
    for (const endpoint of endpoints) {
      expect(await outcome(endpoint)).toBe("ok");
      expect((await endpoint.chat({ ...hello, model: "scripted-not" })).status).toBe(404);
    }
    expect((await narrow[1].models()).ids).toEqual(["scripted:plain"]);
    expect(await outcome(narrow[0])).toBe("model_not_found");
  });

  test("keys of a team share its rate over both gateways, and the refusal names the first that is full", async () => {
    const { key, person, means } = await teamWithMember(site.operator, { isNew: true, rpm: 2 });
    const [one, two] = [await site.issue(key), await site.issue(key)];
    expect([await outcome(one.endpoints[0]), await outcome(two.endpoints[1])]).toEqual(["ok", "ok"]);
    const refused = await refusalOf(one.endpoints[1].chat(hello));
    expect(refused).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
    expect(refused.message).toContain(`The team ${String(key.team)} may send 2 requests a minute`);
    await setTeam(String(key.team), { isNew: false, rpm: 100 }, means);
    await setPerson(person, { rpm: 1 }, means);
    const isNamed = async () =>
      (await refusalOf(two.endpoints[0].chat(hello))).message.includes("The person Anna may send 1 request a minute");
    await until(isNamed, { what: "the person's limit to be named before the team's", timeoutMs: 1_000 });
  });

  test("a disabled person has no stream left at any gateway, and is refused until they are enabled", async () => {
    const { key, person, means } = await teamWithMember(site.operator);
    const { endpoints } = await site.issue(key);
    const { endpoints: others } = await site.issue({ team: key.team });
    const leaving = new AbortController();
    const streams = await Promise.all([...endpoints, ...others].map((each) => each.stream(endless, leaving.signal)));
    for (const stream of streams) await until(() => stream.events.length > 1, { what: "the stream to begin" });
    await enablePerson(person, false, means);
    for (const stream of streams.slice(0, 2)) {
      await stream.over;
      expect(errorIn(stream.events.at(-1) ?? "")).toMatchObject({ code: "key_invalid" });
    }
    expect(await Promise.all(endpoints.map(outcome))).toEqual(["key_invalid", "key_invalid"]);
    expect(await Promise.all(others.map(outcome))).toEqual(["ok", "ok"]);
    await enablePerson(person, true, means);
    await untilOutcome(endpoints, "ok");
    leaving.abort();
  });

  test("a team that is changed holds from the next request on, and answers that run go on", async () => {
    const { team, key, person, means } = await teamWithMember(site.operator);
    const { endpoints } = await site.issue(key);
    const leaving = new AbortController();
    const stream = await endpoints[0].stream(endless, leaving.signal);
    await until(() => stream.events.length > 1, { what: "the stream to begin" });
    await setTeam(team, { isNew: false, scopes: ["other"] }, means);
    await untilOutcome(endpoints, "model_not_found");
    await setTeam(team, { isNew: false, scopes: ["*"] }, means);
    await dropMember(team, { person }, means);
    await untilOutcome(endpoints, "key_invalid");
    const { length } = stream.events;
    await until(() => stream.events.length > length, { what: "the stream to go on" });
    leaving.abort();
  });

  test("usage is booked for the team and the person of the key", async () => {
    const { team, key, person } = await teamWithMember(site.operator);
    const { endpoints, record } = await site.issue(key);
    await outcome(endpoints[0]);
    expect(await site.operator.booked(record.id)).toMatchObject({ team, person, requests: 1 });
  });
});

test("on SQLite alone a person who is disabled from the command line has no stream left and is refused", async () => {
  const stateDir = folderOfTest();
  await using gateway = await startGatewayInProcess({ stateDir });
  await using operator = await Operator.on({ stateDir });
  const { endpoint: plain } = await gateway.issue();
  const { key, person, means } = await teamWithMember(operator);
  const { endpoint } = await gateway.issue(key);
  const stream = await endpoint.stream(endless);
  await until(() => stream.events.length > 1, { what: "the stream to begin" });
  await enablePerson(person, false, means);
  await stream.over;
  expect([await outcome(endpoint), await outcome(plain)]).toEqual(["key_invalid", "ok"]);
});
