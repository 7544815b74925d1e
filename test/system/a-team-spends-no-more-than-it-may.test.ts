import { afterAll, beforeAll, expect, test } from "vitest";
import { setPerson, signedIn } from "#shared/records/change-person.ts";
import { setPrice } from "../harness/set-records.ts";
import { addMember, setTeam } from "#shared/records/change-team.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { type Endpoint, errorIn, refusalOf } from "../harness/endpoint.ts";
import { startTwoGateways, type TwoGateways } from "../harness/two-gateways.ts";
import { until } from "../harness/until.ts";

/** Tokens that an answer may have beyond what was left, as the documents say. */
const overshootMax = 2_000;
/** In millionths: a token of an answer costs one. */
const perMillion = 1_000_000;

let site: TwoGateways;
beforeAll(async () => {
  site = await startTwoGateways();
  const { endpoints } = await site.issue();
  await setPrice("scripted", { output: perMillion }, means());
  const costs = async (endpoint: Endpoint) =>
    (await endpoint.chat({ model: "scripted", says: "/script tokens=1" })).headers.has("x-trunkline-cost");
  for (const each of endpoints) await until(() => costs(each), { what: "the price at each gateway" });
});
afterAll(() => site[Symbol.asyncDispose]());

const means = () => ({ ...site.operator.store, clock, actor: { by: "the operator" } });

async function teamWithMember(team: string, terms: object): Promise<string> {
  await setTeam(team, { isNew: true, ...terms }, means());
  const { name } = await signedIn({ issuer: "https://id", subject: team, called: "Anna", claims: [] }, means());
  await addMember(team, { person: name }, means());
  return name;
}

test("32 streams of a team's keys over two gateways spend its money to the end and no further, and the next request is told so", async () => {
  const spend = { millionths: 40_000, per: "month" } as const;
  const person = await teamWithMember("research", { spend });
  const keys = [await site.issue({ team: "research" }), await site.issue({ team: "research", person })];
  const endpoints = keys.flatMap(({ endpoints: both }) => both);
  const endpointOf = (count: number) => endpoints[count % endpoints.length] as Endpoint;
  const asked = { model: "scripted", says: "/script tokens=50000", stream: true };
  const ends = await Promise.all(
    Array.from({ length: 32 }, async (_, count) => {
      const stream = await endpointOf(count).stream(asked);
      await stream.over;
      return stream.done ? "done" : errorIn(stream.events.at(-1) ?? "")?.code;
    }),
  );
  expect(new Set(ends)).toEqual(new Set(["done"]));
  const booked = async () => {
    const rows = await site.operator.usage();
    const own = rows.filter(({ team }) => team === "research");
    const sum = (metric: "requests" | "cost") => own.reduce((total, row) => total + row[metric], 0);
    return sum("requests") >= 32 && sum("cost");
  };
  const cost = await until(booked, { what: "the streams to be booked" });
  expect(cost).toBeGreaterThanOrEqual(spend.millionths);
  expect(cost).toBeLessThanOrEqual(spend.millionths + 32 * overshootMax);
  for (const endpoint of endpoints) {
    const refused = await refusalOf(endpoint.chat(asked));
    expect(refused).toMatchObject({ status: 429, code: "insufficient_quota" });
    expect(refused.message).toContain("The team research has used ");
  }
});

test("a request takes from the books of its end user, key, person and team or from none, and the first that is full is named", async () => {
  const person = await teamWithMember("apps", { rpm: 4 });
  await setPerson(person, { rpm: 3 }, means());
  const limits = { requestsPerMinute: 2 };
  const app = await site.issue({ team: "apps", person, limits, endUsers: "header", perUserRpm: 1 });
  const [own, ofTeam] = [await site.issue({ team: "apps", person }), await site.issue({ team: "apps" })];
  const asked = { model: "scripted", messages: [{ role: "user", content: "/script tokens=1" }] };
  let sent = 0;
  const send = async ({ endpoints }: typeof app, user = "") => {
    const headers = { "x-openwebui-user-id": user };
    const response = await endpoints[(sent += 1) % 2 ? 0 : 1].post("/chat/completions", asked, { headers });
    return response.status === 200 ? "ok" : (await refusalOf(response)).message.replace(/,.*/, "");
  };
  const told: string[] = [];
  for (const user of ["anna", "anna", "bert", "carl"]) told.push(await send(app, user));
  for (const key of [own, own, ofTeam, ofTeam]) told.push(await send(key));
  expect(told).toEqual([
    "ok",
    "This user may send 1 request a minute",
    "ok",
    "This key may send 2 requests a minute",
    "ok",
    "The person Anna may send 3 requests a minute",
    "ok",
    "The team apps may send 4 requests a minute",
  ]);
});
