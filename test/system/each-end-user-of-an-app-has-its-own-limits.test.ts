import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NewKey } from "#shared/records/issue-key.ts";
import { namesOfEndUsers, openEndUsers } from "#shared/usage/end-users.ts";
import { openUsage } from "#shared/usage/usage.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { startTwoGateways } from "../harness/two-gateways.ts";
import { until } from "../harness/until.ts";

/** A site under test: a new key with an endpoint at each gateway, and the requests that are booked for each of its users. */
interface Site extends AsyncDisposable {
  issue(terms: Partial<NewKey>): Promise<{ readonly id: string; readonly endpoints: readonly Endpoint[] }>;
  readonly store: OpenedKeyStore;
}

const sites: Record<string, () => Promise<Site>> = {
  "two gateways in Redis": async () => {
    const site = await startTwoGateways();
    const issue: Site["issue"] = async (terms) => {
      const { endpoints, record } = await site.issue(terms);
      return { id: record.id, endpoints };
    };
    return { issue, store: site.gateways[0].store, [Symbol.asyncDispose]: () => site[Symbol.asyncDispose]() };
  },
  "one gateway in SQLite": async () => {
    const gateway = await startGatewayInProcess();
    const issue: Site["issue"] = async (terms) => {
      const { endpoint, record } = await gateway.issue(terms);
      return { id: record.id, endpoints: [endpoint] };
    };
    return { issue, store: gateway.store, [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() };
  },
};

/** Returns the end users of a key as they are shown, each with its requests, once there are so many of these. */
async function requestsByUser({ state, peppers }: OpenedKeyStore, keyId: string, requests: number) {
  const rowsOf = async () => {
    const { rows } = await openUsage(state).read({ from: "2000-01-01", to: "2999-01-01" }, "users");
    const own = rows.filter(({ endUser }) => endUser?.startsWith(`${keyId}:`));
    return own.reduce((sum, row) => sum + row.requests, 0) === requests && own;
  };
  const rows = await until(rowsOf, { what: "what users asked to be booked", timeoutMs: 15_000 });
  const ids = rows.map(({ endUser }) => endUser ?? "");
  const names = await namesOfEndUsers(ids, { endUsers: openEndUsers(state), peppers });
  return rows.map((row) => `${names.get(row.endUser ?? "")}: ${row.requests}`).toSorted();
}

const body = { model: "scripted", messages: [{ role: "user", content: "/script tokens=200" }] };
const refusedWith = async (response: Response): Promise<readonly unknown[]> => {
  const { error } = (await response.json()) as { error?: { message: string } };
  return [response.status, error?.message];
};

describe.each(Object.keys(sites))("%s", (name) => {
  let site: Site;
  beforeAll(async () => void (site = await (sites[name] as () => Promise<Site>)()));
  afterAll(() => site[Symbol.asyncDispose]());
  const at = (endpoints: readonly Endpoint[], count: number): Endpoint =>
    endpoints[count % endpoints.length] as Endpoint;

  test("a hundred users behind Open WebUI's headers each have a budget, which no other one uses up", async () => {
    const { id, endpoints } = await site.issue({ endUsers: "header", perUserBudget: { tokens: 100, per: "day" } });
    const users = Array.from({ length: 100 }, (_, count) => `user-${count}`);
    const ask = (user: string, gateway: number) =>
      at(endpoints, gateway).post("/chat/completions", body, { headers: { "X-OpenWebUI-User-Id": user } });
    const first = await Promise.all(users.map(async (user, count) => (await ask(user, count)).status));
    expect(first).toEqual(users.map(() => 200));
    expect(await requestsByUser(site.store, id, 100)).toEqual(users.map((user) => `${user}: 1`).toSorted());
    const second = await Promise.all(users.map(async (user, count) => refusedWith(await ask(user, count + 1))));
    const told = expect.stringMatching(/^This user (?:may use|has used) /);
    expect(second).toEqual(users.map(() => [429, told]));
    expect((await at(endpoints, 0).post("/chat/completions", body)).status).toBe(200);
  });

  test("a user is believed in the fields of every API for the key that says so, and means nothing for any other key", async () => {
    const { id, endpoints } = await site.issue({ endUsers: "field", perUserRpm: 1 });
    const [endpoint] = endpoints as [Endpoint];
    const asks: [path: string, fields: object, ignored: string | null][] = [
      ["/chat/completions", { user: "a", safety_identifier: "anna" }, "user"],
      ["/chat/completions", { user: "bert" }, null],
      ["/responses", { messages: undefined, input: "/script tokens=2", safety_identifier: "carl" }, null],
      ["/messages", { max_tokens: 10, metadata: { user_id: "dora" } }, null],
    ];
    for (const [path, fields, ignored] of asks) {
      const response = await endpoint.post(path, { ...body, ...fields });
      expect([path, response.status, response.headers.get("x-trunkline-ignored")]).toEqual([path, 200, ignored]);
      expect((await endpoint.post(path, { ...body, ...fields })).status).toBe(429);
    }
    expect((await endpoint.post("/chat/completions", { ...body, user: 7 })).status).toBe(400);
    const header = { headers: { "X-OpenWebUI-User-Id": "anna" } };
    for (let times = 0; times < 2; times += 1)
      expect((await endpoint.post("/chat/completions", body, header)).status).toBe(200);
    expect(await requestsByUser(site.store, id, 8)).toEqual(["anna: 2", "bert: 2", "carl: 2", "dora: 2"]);
    const other = await site.issue({});
    const plain = await at(other.endpoints, 0).post("/chat/completions", { ...body, user: "anna" }, header);
    expect([plain.status, plain.headers.get("x-trunkline-ignored")]).toEqual([200, "user"]);
    expect(await requestsByUser(site.store, other.id, 0)).toEqual([]);
  });

  test("names of 10 KB with line breaks are told apart by all of their characters, and shown by 64 on one line", async () => {
    const { id, endpoints } = await site.issue({ endUsers: "field", perUserRpm: 1 });
    const long = `eve\n\u202e${"é".repeat(5_000)}`;
    const ask = async (user: string) => (await at(endpoints, 0).post("/chat/completions", { ...body, user })).status;
    expect([await ask(`${long}1`), await ask(`${long}2`), await ask(`${long}1`)]).toEqual([200, 200, 429]);
    expect(await requestsByUser(site.store, id, 3)).toEqual(
      [1, 2].map((requests) => `eve??${"é".repeat(59)}: ${requests}`),
    );
  });
});
