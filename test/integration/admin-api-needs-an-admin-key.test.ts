import { beforeEach, describe, expect, test, vi } from "vitest";
import { changeKey, rotateKey } from "#shared/records/change-key.ts";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { sqlitePlace, type KeyPlace } from "../contract/key-store-place.ts";
import { AdminOnStore, operations } from "../unit/gateway/operations/admin-on-a-store.ts";

const anId = "0aB1cD2eF3gH";
const dayMs = 86_400_000;

let place: KeyPlace;
let api: AdminOnStore;
beforeEach(async () => {
  place = await sqlitePlace();
  api = new AdminOnStore(await place.open());
  await api.issue();
});

const issueAdmin = async (ttlMs = dayMs) => (await api.issue({ kind: "admin", ttlMs })).token;

/** Each makes the key that is sent. */
const callers: Record<string, () => Promise<string | undefined>> = {
  "no key": async () => undefined,
  "a text that is no key": async () => "sk-1234",
  "a key with a wrong checksum": async () => `${(await issueAdmin()).reveal().slice(0, -6)}000000`,
  "an admin key that was never issued": async () => mintKeyToken("admin").reveal(),
  "another secret for an admin key": async () => mintKeyToken("admin", (await issueAdmin()).id).reveal(),
  "a revoked admin key": async () => {
    const token = await issueAdmin();
    await changeKey(token.id, { action: "revoked" }, api.means());
    return token.reveal();
  },
  "a disabled admin key": async () => {
    const token = await issueAdmin();
    await changeKey(token.id, { action: "disabled" }, api.means());
    return token.reveal();
  },
  "an expired admin key": async () => {
    const token = await issueAdmin();
    api.clock.advance(dayMs);
    return token.reveal();
  },
  "an admin key that was replaced": async () => {
    const token = await issueAdmin();
    await rotateKey({ id: token.id, graceMs: 1 }, api.means());
    api.clock.advance(1);
    return token.reveal();
  },
  "a key that calls models": async () => (await api.issue()).token.reveal(),
  "an expired key that calls models": async () => {
    const { token } = await api.issue();
    api.clock.advance(dayMs);
    return token.reveal();
  },
  "an admin key": async () => (await issueAdmin()).reveal(),
};

test.each([
  ["no key", 401, "key_invalid"],
  ["a text that is no key", 401, "key_invalid"],
  ["a key with a wrong checksum", 401, "key_invalid"],
  ["an admin key that was never issued", 401, "key_invalid"],
  ["another secret for an admin key", 401, "key_invalid"],
  ["a revoked admin key", 401, "key_invalid"],
  ["a disabled admin key", 401, "key_invalid"],
  ["an expired admin key", 401, "key_expired"],
  ["an admin key that was replaced", 401, "key_expired"],
  ["a key that calls models", 403, "insufficient_permissions"],
  ["an expired key that calls models", 401, "key_expired"],
  ["an admin key", 200, undefined],
] as const)("with %s the answer is %d %s", async (caller, status, code) => {
  const key = await callers[caller]?.();
  const told = await api.ask("GET", "/keys", key === undefined ? {} : { key });
  expect(told.status).toBe(status);
  if (code !== undefined) expect(told.json).toMatchObject({ error: { code, param: null } });
  if (status === 401) expect(told.headers["www-authenticate"]).toBe("Bearer");
  if (status === 403) expect(told.headers["x-should-retry"]).toBe("false");
});

describe("every operation but the description of them all", () => {
  const closed = operations.filter(({ path }) => path !== "/openapi.json");
  test.each(closed.map(({ method, path }) => [method, path] as const))(
    "%s %s does nothing without an admin key, whatever is sent",
    async (method, path) => {
      const { record, token } = await api.issue({ name: "untouched" });
      const entries = await api.keys.log({ entriesMax: 100 });
      const at = path.replace("{id}", record.id);
      const body = method === "GET" ? {} : { body: "{ broken" };
      expect((await api.ask(method, at, body)).status).toBe(401);
      expect((await api.ask(method, at, { key: token.reveal(), ...body })).status).toBe(403);
      expect(await api.keys.find(record.id)).toEqual({ kind: "record", record });
      expect(await api.keys.log({ entriesMax: 100 })).toEqual(entries);
    },
  );

  test("the description needs none", async () => {
    expect((await api.ask("GET", "/openapi.json")).status).toBe(200);
  });
});

test("a store that is away or emptied is 503, and no key is called invalid", async () => {
  const key = (await issueAdmin()).reveal();
  const away = { status: 503, json: { error: { code: "auth_unavailable" } }, headers: { "retry-after": "1" } };
  await place.empty();
  expect(await api.ask("GET", "/keys", { key })).toMatchObject(away);
  await api.keys.close();
  expect(await api.ask("GET", "/keys", { key })).toMatchObject(away);
});

test("the store is asked once for each request with a key, and never for what is none", async () => {
  const key = (await issueAdmin()).reveal();
  const find = vi.spyOn(api.keys, "find");
  await api.ask("GET", "/log", { key });
  await api.ask("GET", "/log", { key });
  for (const wrong of [`${key.slice(0, -6)}000000`, "sk-1234"]) await api.ask("GET", "/log", { key: wrong });
  expect(find).toHaveBeenCalledTimes(2);
});

test("a method that a path does not have is 405 and says which it has, without a key", async () => {
  const refused = async (method: "PUT" | "DELETE" | "GET" | "PATCH", path: string) => {
    const told = await api.ask(method, path);
    return { status: told.status, allow: told.headers["allow"], kept: told.headers["cache-control"] };
  };
  const told = (allow: string) => ({ status: 405, allow, kept: "no-store" });
  expect(await refused("DELETE", "/keys")).toEqual(told("GET, HEAD, POST"));
  expect(await refused("PUT", `/keys/${anId}`)).toEqual(told("GET, HEAD, PATCH, DELETE"));
  expect(await refused("GET", `/keys/${anId}/rotate`)).toEqual(told("POST"));
  expect(await refused("PATCH", "/log")).toEqual(told("GET, HEAD"));
  expect((await api.server.inject({ method: "GET", url: "/admin/v1/nothing" })).statusCode).toBe(404);
});
