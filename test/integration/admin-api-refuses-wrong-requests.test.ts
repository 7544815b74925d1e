import { beforeEach, describe, expect, test } from "vitest";
import { sqlitePlace } from "../contract/key-store-place.ts";
import { AdminOnStore, type Method, type Told } from "../unit/gateway/operations/admin-on-a-store.ts";

let api: AdminOnStore;
let key: string;
let ask: (method: Method, path: string, body?: unknown) => Promise<Told>;
beforeEach(async () => {
  api = new AdminOnStore(await (await sqlitePlace()).open());
  key = (await api.issue({ kind: "admin" })).token.reveal();
  ask = (method, path, body) => api.ask(method, path, { key, body });
});

type Case = [code: string | null, param: string | null, wrong: unknown];
const bob = (fields: object) => ({ name: "bob", ...fields });

/** Nothing of a request that is wrong anywhere is done. */
async function expectRefused(request: Promise<Told>, code: string | null, param: string | null): Promise<void> {
  const entries = await api.keys.log({ entriesMax: 100 });
  expect(await request).toMatchObject({ status: 400, json: { error: { code, param } } });
  expect(await api.keys.log({ entriesMax: 100 })).toEqual(entries);
}

describe("a new key", () => {
  test.each<Case>([
    ["missing_required_parameter", "name", {}],
    ["missing_required_parameter", "name", undefined],
    ["invalid_type", "name", { name: 7 }],
    ["invalid_type", "name", { name: null }],
    ["invalid_value", "name", { name: "" }],
    ["invalid_value", "name", { name: "two\nlines" }],
    ["string_too_long", "name", { name: "x".repeat(101) }],
    ["unsupported_parameter", "scope", bob({ scope: ["*"] })],
    ["unsupported_parameter", "budget.every", bob({ budget: { tokens: 1, per: "day", every: 2 } })],
    ["invalid_value", "kind", bob({ kind: "root" })],
    ["invalid_type", "scopes", bob({ scopes: "*" })],
    ["empty_array", "scopes", bob({ scopes: [] })],
    ["invalid_value", "scopes[1]", bob({ scopes: ["*", "a b"] })],
    ["array_above_max_length", "scopes", bob({ scopes: Array.from({ length: 65 }, () => "*") })],
    ["invalid_value", "ttl", bob({ ttl: "soon" })],
    ["invalid_value", "ttl", bob({ ttl: "0d" })],
    ["invalid_value", "ttl", bob({ ttl: "3651d" })],
    ["invalid_type", "ttl", bob({ ttl: 90 })],
    ["invalid_value", "ttl", bob({ kind: "admin", ttl: "91d" })],
    ["empty_array", "machines", bob({ machines: [] })],
    ["invalid_value", "machines[0]", bob({ machines: ["Attic!"] })],
    ["integer_below_min_value", "rpm", bob({ rpm: 0 })],
    ["integer_above_max_value", "rpm", bob({ rpm: 1_000_001 })],
    ["invalid_type", "tpm", bob({ tpm: "many" })],
    ["invalid_type", "concurrency", bob({ concurrency: 1.5 })],
    ["missing_required_parameter", "budget.per", bob({ budget: { tokens: 5 } })],
    ["invalid_value", "budget.per", bob({ budget: { tokens: 5, per: "year" } })],
    [null, null, "{ broken"],
    ["invalid_type", null, []],
  ])("%s %s: %j", async (code, param, body) => {
    await expectRefused(ask("POST", "/keys", body), code, param);
    expect(await api.keys.list()).toHaveLength(1);
  });
});

describe("a change", () => {
  test.each<[method: Method, action: string, ...Case]>([
    ["PATCH", "", "unsupported_parameter", "ttl", { name: "robert", ttl: "1d" }],
    ["PATCH", "", "invalid_type", "name", { name: null }],
    ["PATCH", "", "invalid_type", "scopes", { scopes: null }],
    ["PATCH", "", "empty_array", "machines", { name: "robert", machines: [] }],
    ["PATCH", "", "integer_below_min_value", "rpm", { name: "robert", rpm: 0 }],
    ["POST", "/rotate", "invalid_value", "grace", { grace: "a day" }],
    ["POST", "/rotate", "unsupported_parameter", "ttl", { ttl: "1d" }],
    ["POST", "/extend", "unsupported_parameter", "tll", { tll: "1d" }],
    ["POST", "/extend", "invalid_value", "ttl", { ttl: "0s" }],
    ["POST", "/disable", "unsupported_parameter", "reason", { reason: "?" }],
    ["POST", "/enable", "unsupported_parameter", "reason", { reason: "?" }],
    ["POST", "/revoke", "unsupported_parameter", "reason", { reason: "?" }],
    ["DELETE", "", "unsupported_parameter", "reason", { reason: "?" }],
    ["POST", "/rotate", null, null, "{"],
  ])("%s %s: %s %s %j", async (method, action, code, param, body) => {
    const { record } = await api.issue();
    await expectRefused(ask(method, `/keys/${record.id}${action}`, body), code, param);
    expect(await api.keys.find(record.id)).toEqual({ kind: "record", record });
  });
});

describe("a URL", () => {
  test.each([
    ["GET", "/keys/short", "invalid_value", "id"],
    ["POST", "/keys/sixteen-letters-/rotate", "invalid_value", "id"],
    ["GET", "/keys?limit=0", "integer_below_min_value", "limit"],
    ["GET", "/keys?limit=1001", "integer_above_max_value", "limit"],
    ["GET", "/keys?limit=ten", "invalid_type", "limit"],
    ["GET", "/keys?limit=1e1", "invalid_type", "limit"],
    ["GET", "/keys?limit=", "invalid_type", "limit"],
    ["GET", "/keys?limit=1&limit=2", "invalid_type", "limit"],
    ["GET", "/keys?state=lost", "invalid_value", "state"],
    ["GET", "/keys?after=0aB1cD2eF3gH", "invalid_value", "after"],
    ["GET", "/keys?stat=valid", "unsupported_parameter", "stat"],
    ["GET", "/log?key=", "invalid_value", "key"],
    ["GET", "/log?limit=5&who=me", "unsupported_parameter", "who"],
    ["GET", "/usage?from=2026-02-30", "invalid_value", "from"],
    ["GET", "/usage?from=yesterday", "invalid_value", "from"],
    ["GET", "/usage?from=2026-02-02&to=2026-02-01", "invalid_value", "from"],
    ["GET", "/usage?from=2020-01-01&to=2026-01-01", "invalid_value", "from"],
    ["POST", "/keys?name=bob", "unsupported_parameter", "name"],
  ] as const)("%s %s: %s %s", async (method, path, code, param) => {
    await expectRefused(ask(method, path), code, param);
    expect(api.usageAsked).toEqual([]);
  });
});

test("a whole key in place of its id is refused and not said again", async () => {
  const { token } = await api.issue();
  const told = await ask("GET", `/keys/${token.reveal()}`);
  expect(told).toMatchObject({ status: 400, json: { error: { param: "id" } } });
  expect(JSON.stringify(told)).not.toContain(token.reveal().slice(-38));
});

test("a body that is not JSON by its type is refused", async () => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "text/plain" };
  const response = await api.server.inject({ method: "POST", url: "/admin/v1/keys", headers, payload: "name=bob" });
  expect(response.statusCode).toBe(415);
});
