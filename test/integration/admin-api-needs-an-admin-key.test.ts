import { beforeEach, describe, expect, test, vi } from "vitest";
import { changeKey, rotateKey } from "#shared/records/change-key.ts";
import { mintKeyToken, parseKeyToken, type KeyToken } from "#shared/keys/key-token.ts";
import { sqlitePlace, type KeyPlace } from "../contract/key-store-place.ts";
import { AdminOnStore, operations, peppers, type Method } from "../unit/gateway/operations/admin-on-a-store.ts";

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

const issueModel = async () => (await api.issue()).token;

/** The text of a key that this has befallen. */
async function keyAfter(issued: Promise<KeyToken>, befalls: (token: KeyToken) => unknown): Promise<string> {
  const token = await issued;
  await befalls(token);
  return token.reveal();
}
const changed = (action: "revoked" | "disabled") => (token: KeyToken) => changeKey(token.id, { action }, api.means());
const expired = (): void => api.clock.advance(dayMs);
async function replaced({ id }: KeyToken): Promise<void> {
  await rotateKey({ id, graceMs: 1 }, api.means());
  api.clock.advance(1);
}

/** Rows of a caller, the way its key is made, and the answer: 401 key_invalid unless another one stands here. */
const callers: readonly [who: string, key: () => Promise<string | undefined>, status?: number, code?: string][] = [
  ["no key", async () => undefined],
  ["a text that is no key", async () => "sk-1234"],
  ["a key with a wrong checksum", async () => `${(await issueAdmin()).reveal().slice(0, -6)}000000`],
  ["an admin key that was never issued", async () => mintKeyToken("admin").reveal()],
  ["another secret for an admin key", async () => mintKeyToken("admin", (await issueAdmin()).id).reveal()],
  ["a revoked admin key", () => keyAfter(issueAdmin(), changed("revoked"))],
  ["a disabled admin key", () => keyAfter(issueAdmin(), changed("disabled"))],
  ["an expired admin key", () => keyAfter(issueAdmin(), expired), 401, "key_expired"],
  ["an admin key that was replaced", () => keyAfter(issueAdmin(), replaced), 401, "key_expired"],
  ["a key that calls models", () => keyAfter(issueModel(), () => undefined), 403, "insufficient_permissions"],
  ["an expired key that calls models", () => keyAfter(issueModel(), expired), 401, "key_expired"],
  ["an admin key", () => keyAfter(issueAdmin(), () => undefined), 200],
];

test.each(callers)("the admin API answers %s", async (_, keyOf, status = 401, code = "key_invalid") => {
  const key = await keyOf();
  const told = await api.ask("GET", "/keys", key === undefined ? {} : { key });
  expect(told.status).toBe(status);
  if (status !== 200) expect(told.json).toMatchObject({ error: { code, param: null } });
  if (status === 401) expect(told.headers["www-authenticate"]).toBe("Bearer");
  if (status === 403) expect(told.headers["x-should-retry"]).toBe("false");
});

test("sessions of operators and viewers change neither teams, people nor alert targets", () => {
  const changes = operations.filter(({ method, path }) => method !== "GET" && /^\/(?:teams|people|alerts)/.test(path));
  expect(changes.map(({ forAdmins }) => forAdmins)).toEqual(Array.from({ length: 12 }, () => true));
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

  test("the description of the admin API needs no key", async () => {
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

function tokenOf(text: unknown): KeyToken {
  const parsed = parseKeyToken(String(text));
  if (parsed.outcome !== "parsed") throw new Error(parsed.outcome);
  return parsed.token;
}

test("a secret leaves in one answer only, the one that made it, and no digest does", async () => {
  const admin = (await api.issue({ kind: "admin" })).token;
  const ask = (method: Method, path: string, body?: unknown) => api.ask(method, path, { key: admin.reveal(), body });

  const issued = await ask("POST", "/keys", { name: "bob" });
  const at = `/keys/${String(issued.json["id"])}`;
  const rotated = await ask("POST", `${at}/rotate`, { grace: "1h" });
  await ask("PATCH", at, { name: "robert", rpm: 5 });
  await ask("PATCH", at, { name: 7 });
  for (const action of ["extend", "disable", "enable", "enable", "revoke", "rotate"])
    await ask("POST", `${at}/${action}`);
  for (const path of [at, "/keys", "/log", "/usage", "/openapi.json", "/keys?limit=x"]) await ask("GET", path);
  await api.ask("GET", "/keys", { key: admin.reveal().slice(0, -1) });

  const tokens = [admin, tokenOf(issued.json["key"]), tokenOf(rotated.json["key"])];
  const timesSent = tokens.map((token) => api.sent.filter((text) => text.includes(token.reveal().slice(-38))).length);
  expect(timesSent).toEqual([0, 1, 1]);
  const all = [...api.sent, ...api.logged].join("\n");
  for (const token of tokens) expect(all).not.toContain(token.digest(peppers.current));
  expect(api.logged.length).toBeGreaterThan(0);
  for (const token of tokens) expect(api.logged.join("\n")).not.toContain(token.reveal().slice(-38));
});

test("no answer is kept by anybody on its way, whatever became of the request", async () => {
  const key = (await api.issue({ kind: "admin" })).token.reveal();
  const answers = [
    await api.ask("POST", "/keys", { key, body: { name: "bob" } }),
    await api.ask("POST", "/keys", { key, body: {} }),
    await api.ask("GET", "/keys", { key }),
    await api.ask("GET", "/keys"),
    await api.ask("PUT", "/keys"),
    await api.ask("GET", "/openapi.json"),
  ];
  expect(answers.map(({ status }) => status)).toEqual([201, 400, 200, 401, 405, 200]);
  for (const { headers } of answers) expect(headers["cache-control"]).toBe("no-store");
});
