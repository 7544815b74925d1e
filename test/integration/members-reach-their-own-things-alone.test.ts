import { request as ask, type IncomingHttpHeaders } from "node:http";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { adminApi } from "#shared/admin/admin-api.ts";
import { memberOperations } from "#shared/admin/member-operations.ts";
import type { AdminOperation } from "#shared/admin/operation.ts";
import { changeKey } from "#shared/records/change-key.ts";
import { enablePerson } from "#shared/records/change-person.ts";
import { personIdOf } from "#shared/records/person-record.ts";
import { createLog } from "#shared/process/log.ts";
import { loginKeyPath } from "#shared/protocol/login.ts";
import { openUsage } from "#shared/usage/usage.ts";
import { noRequests } from "../harness/no-requests.ts";
import { ConfigFailure } from "#shared/process/config.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { OwnIdempotencyRecords } from "../../services/gateway/jobs/idempotency-records.ts";
import { BadKeys, badKeysPerMinuteMax } from "../../services/gateway/keys/bad-keys.ts";
import { memberRequestsPerMinuteMax } from "../../services/gateway/members/member-access.ts";
import { serveMembers } from "../../services/gateway/members/serve-members.ts";
import { OpenId } from "../../services/gateway/operations/open-id.ts";
import { createServer } from "../../services/gateway/server.ts";
import { errorBody } from "../../services/gateway/operations/admin-api.ts";
import { addTeam } from "../harness/add-team.ts";
import { Endpoint } from "../harness/endpoint.ts";
import { type GatewayInProcess, startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { until } from "../harness/until.ts";
import { OpenIdPeople } from "../harness/openid-people.ts";

const publicUrl = "https://models.example.org";
const own = { "sec-fetch-site": "same-origin", "x-trunkline-console": "1" };
const api = "/console/member/v1";

let people: OpenIdPeople;
let site: GatewayInProcess;
beforeAll(async () => {
  people = await OpenIdPeople.start(`${publicUrl}/console/openid/done`, "https://ops.example.org/console/openid/done");
  site = await startGatewayInProcess({ env: environment() });
  await site.issue();
  const limits = { requestsPerMinute: 60, budget: { tokens: 1_000, per: "month" } };
  const allowed = { own: { keys: 3, days: 30, limits } };
  await addTeam(site.store, "research", { scopes: ["script*"], ...allowed });
  await addTeam(site.store, "other", allowed);
  people.claims.set("ada", { groups: ["ops"], email: "ada@example.org" });
  people.claims.set("anna", { groups: ["staff", "research"], email: "anna@example.org", email_verified: true });
  people.claims.set("bert", { groups: ["other"], email: "bert@example.org" });
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  await people[Symbol.asyncDispose]();
});

const environment = () => ({
  ...people.settings,
  TRUNKLINE_OIDC_ROLES: "ops=admin,staff=member",
  TRUNKLINE_PUBLIC_URL: publicUrl,
  TRUNKLINE_CONSOLE_URL: "https://ops.example.org",
  TRUNKLINE_TRUSTED_PROXIES: "127.0.0.1",
  TRUNKLINE_CORS_ORIGINS: "*",
});

interface Sent {
  readonly cookie?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly port?: "public" | "operations";
  readonly host?: string;
  /** Called for each piece of the answer. */
  readonly onPiece?: () => void;
}
interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: ReturnType<typeof JSON.parse>;
}

async function send(method: string, path: string, sent: Sent = {}): Promise<Got> {
  const { cookie, headers = own, body, port = "public", host = "models.example.org", onPiece } = sent;
  const { hostname, port: number } = new URL(port === "public" ? site.baseUrl : site.operationsUrl);
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const all = { ...headers, ...type, ...(cookie !== undefined && { cookie }), ...(port === "public" && { host }) };
  return new Promise((resolve, reject) => {
    const request = ask({ hostname, port: number, method, path, headers: all }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        onPiece?.();
      });
      response.on("end", () => {
        const isJson = String(response.headers["content-type"]).startsWith("application/json");
        const { statusCode: status = 0 } = response;
        resolve({ status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined });
      });
    });
    request.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Signs a person in at a port, and returns where the gateway sends the browser, and the cookie of its session. */
async function signInAt(port: "public" | "operations", person: string) {
  const begun = await send("GET", "/console/openid", { port, headers: {} });
  const kept = String(begun.headers["set-cookie"]).split(";")[0] ?? "";
  const back = await people.signIn(String(begun.headers.location), person);
  const done = await send("GET", back.pathname + back.search, { port, cookie: kept, headers: {} });
  const cookies = done.headers["set-cookie"] ?? [];
  const session = cookies.find((each) => /^(?:__Host-trunkline_member|trunkline_session)=t/.test(each));
  return { at: String(done.headers.location), cookie: session?.split(";")[0] ?? "", session, back };
}

async function memberCookie(person: string): Promise<string> {
  const { at, cookie } = await signInAt("public", person);
  expect([at, cookie]).toEqual(["/console", expect.stringContaining("__Host-trunkline_member=trunkline_member_")]);
  return cookie;
}

/** Makes a key of a member, and has it answer once. */
async function useNewKey(cookie: string, name: string) {
  const made = await send("POST", `${api}/keys`, { cookie, body: { name } });
  expect(made.status).toBe(201);
  const endpoint = new Endpoint({ baseUrl: site.baseUrl, key: made.json.key });
  const chat = async () => {
    const answer = await endpoint.chat({ model: "scripted", messages: [{ role: "user", content: "Hello" }] });
    await answer.text();
    return answer;
  };
  // The gateway hears of the person's first sign-in within 100 ms.
  await until(async () => (await chat()).status === 200, { what: "the gateway to know the person", timeoutMs: 5_000 });
  const request = String((await chat()).headers.get("x-request-id"));
  await expect
    .poll(() => site.store.state && send("GET", `${api}/requests/${request}`, { cookie }).then(({ status }) => status))
    .toBe(200);
  return { id: String(made.json.id), key: String(made.json.key), request };
}

const operations: readonly AdminOperation[] = Object.values(memberOperations);
const filled = ({ path }: AdminOperation) => path.replaceAll(/\{\w+\}/g, "0aB1cD2eF3gH");

test("a member makes a key, calls a model with it and sees its use, without an administrator", async () => {
  const cookie = await memberCookie("anna");
  const { id, request } = await useNewKey(cookie, "laptop");
  const keys = await send("GET", `${api}/keys`, { cookie });
  expect(keys.json.data).toEqual([expect.objectContaining({ id, name: "laptop", team: "research", rpm: 60 })]);
  await expect.poll(async () => (await send("GET", `${api}/usage`, { cookie })).json.data.length).toBe(1);
  const requests = await send("GET", `${api}/requests`, { cookie });
  expect(requests.json.data.map((each: { id: string }) => each.id)).toContain(request);
  const models = await send("GET", `${api}/models`, { cookie });
  expect(models.json.data).toContainEqual(expect.objectContaining({ id: "scripted", teams: ["research"] }));
  const { json: self } = await send("GET", `${api}/me`, { cookie });
  expect(self).toMatchObject({
    email: "anna@example.org",
    base_url: `${publicUrl}/v1`,
    teams: [{ team: "research", keys: 1 }],
  });
  const rotated = await send("POST", `${api}/keys/${id}/rotate`, { cookie, body: { grace: "0s" } });
  expect(rotated.json.key).toMatch(/^trunkline_/);
  expect((await send("POST", `${api}/keys/${id}/revoke`, { cookie, body: {} })).json).toEqual({ id, state: "revoked" });
  const refused = await new Endpoint({ baseUrl: site.baseUrl, key: rotated.json.key }).models();
  expect(refused.status).toBe(401);
});

test("a member's session reaches each operation of members and no operation of admins, on either port", async () => {
  const cookie = await memberCookie("anna");
  const token = cookie.slice(cookie.indexOf("=") + 1);
  for (const each of operations) {
    const sent = { cookie, ...(each.method !== "GET" && { body: {} }) };
    const { status, json } = await send(each.method, api + filled(each), sent);
    expect([each.path, status]).toEqual([each.path, expect.toBeOneOf([200, 400, 404])]);
    if (status === 404) expect(json.error.code).toMatch(/^(?:key|request)_not_found$/);
    expect((await send(each.method, api + filled(each))).json.error.code).toBe("key_invalid");
    expect((await send(each.method, api + filled(each), { ...sent, port: "operations" })).status).not.toBe(201);
  }
  for (const each of Object.values(adminApi) as readonly AdminOperation[]) {
    const body = each.method === "GET" ? {} : { body: {} };
    const path = `/admin/v1${filled(each)}`;
    const refused = [
      await send(each.method, path, { cookie, ...body }),
      await send(each.method, path, { cookie, port: "operations", ...body }),
      await send(each.method, path, { cookie: `trunkline_session=${token}`, port: "operations", ...body }),
    ];
    expect([path, ...refused.map(({ status }) => status)]).toEqual([path, 404, 401, 401]);
    for (const { json } of refused) expect(errorBody.safeParse(json).success).toBe(true);
    const isOwn = operations.some(({ method, path: known }) => method === each.method && known === each.path);
    if (!isOwn)
      expect([each.path, (await send(each.method, api + filled(each), { cookie, ...body })).status]).toEqual([
        each.path,
        expect.toBeOneOf([404, 405]),
      ]);
  }
  for (const path of ["/metrics", "/admin/v1/openapi.json"])
    expect((await send("GET", path, { cookie })).status).toBe(404);
});

test("a session of one port is refused on the other, and who signs in at the public port is a member there", async () => {
  const console = await signInAt("operations", "ada");
  expect(console.cookie).toMatch(/^trunkline_session=trunkline_session_/);
  const token = console.cookie.split("=")[1];
  for (const cookie of [console.cookie, `__Host-trunkline_member=${token}`])
    expect((await send("GET", `${api}/me`, { cookie })).status).toBe(401);
  const { cookie, session } = await signInAt("public", "ada");
  expect(session).toMatch(/; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/);
  const self = await send("GET", `${api}/me`, { cookie });
  expect(self.json.teams).toEqual([]);
  expect((await send("POST", `${api}/keys`, { cookie, body: { name: "x" } })).json.error).toMatchObject({
    param: "team",
  });
  expect((await send("GET", "/admin/v1/keys", { cookie, port: "operations" })).status).toBe(401);
  expect((await site.store.keys.list()).filter(({ kind }) => kind !== "model")).toHaveLength(1);
});

test("a sign-in that was begun at one port opens no session at the other", async () => {
  const begun = await send("GET", "/console/openid", { headers: {} });
  const back = await people.signIn(String(begun.headers.location), "anna");
  const kept = String(begun.headers["set-cookie"])
    .split(";")[0]
    ?.replace(/^[^=]+/, "trunkline_openid");
  const done = await send("GET", back.pathname + back.search, { port: "operations", cookie: kept, headers: {} });
  expect(done.headers.location).toBe("/console#refused=refused");
});

test("keys, usage and requests of somebody else are as if they were not there", async () => {
  const [anna, bert] = [await memberCookie("anna"), await memberCookie("bert")];
  const foreign = await useNewKey(bert, "bert's");
  for (const path of [`/keys/${foreign.id}/rotate`, `/keys/${foreign.id}/revoke`]) {
    const { status, json } = await send("POST", api + path, { cookie: anna, body: {} });
    expect([status, json.error.code]).toEqual([404, "key_not_found"]);
  }
  const unknown = await send("GET", `${api}/requests/req_unknown`, { cookie: anna });
  const theirs = await send("GET", `${api}/requests/${foreign.request}`, { cookie: anna });
  expect(theirs.status).toBe(404);
  expect(theirs.text.replace(foreign.request, "req_unknown")).toBe(unknown.text);
  for (const path of ["/keys", "/usage", "/requests", "/me"])
    expect((await send("GET", api + path, { cookie: anna })).text).not.toContain(foreign.id);
  expect((await send("GET", `${api}/usage?key=${foreign.id}`, { cookie: anna })).status).toBe(400);
});

const chatPath = "/console/v1/chat/completions";
const hello = { model: "scripted", messages: [{ role: "user", content: "Hello" }] };
/** The headers of the page when it chats by a key. */
const byKey = (id: string) => ({ ...own, "x-trunkline-key": id });
const chatBy = (id: string, sent: Sent) => send("POST", chatPath, { body: hello, headers: byKey(id), ...sent });

test("a chat of the playground counts for the member's own key that it names, and has that key's models and limits", async () => {
  people.claims.set("olga", { groups: ["research"] });
  const cookie = await memberCookie("olga");
  const terms = { name: "x", scopes: ["scripted:plain"], rpm: 1 };
  const { id } = (await send("POST", `${api}/keys`, { cookie, body: terms })).json;
  const listed = await send("GET", "/console/v1/models", { cookie, headers: byKey(id) });
  expect(listed.json.data.map((each: { id: string }) => each.id)).toEqual(["scripted:plain"]);
  expect(listed.headers["access-control-allow-origin"]).toBeUndefined();
  const body = { ...hello, model: "scripted:plain" };
  expect((await chatBy(id, { cookie })).json.error.code).toBe("model_not_found");
  const answered = await chatBy(id, { cookie, body });
  expect([answered.status, answered.json.choices[0].message.content]).toEqual([200, expect.stringMatching(/^Hello!/)]);
  const request = String(answered.headers["x-request-id"]);
  const shown = () => send("GET", `${api}/requests/${request}`, { cookie });
  await expect.poll(async () => (await shown()).json).toMatchObject({ key: id, code: "ok", path: chatPath });
  expect((await chatBy(id, { cookie, body })).json.error.code).toBe("rate_limit_exceeded");
  const usage = async () => (await send("GET", `${api}/usage`, { cookie })).json.data;
  await expect.poll(usage).toContainEqual(expect.objectContaining({ key: id, team: "research", requests: 1 }));
});

test("the playground refuses each key but a valid one of the member's own, and a session that is none of a member", async () => {
  people.claims.set("pia", { groups: ["research"] });
  const [cookie, person] = [await memberCookie("pia"), personIdOf(people.issuer, "pia")];
  const issue = async (terms: object) => (await site.issue({ person, team: "research", ...terms })).record.id;
  const valid = await issue({});
  const [revoked, disabled] = [await issue({}), await issue({})];
  for (const [id, action] of [
    [revoked, "revoked"],
    [disabled, "disabled"],
  ] as const)
    await changeKey(id, { action }, { ...site.store, actor: { by: "the operator" } });
  const ofBert = await issue({ person: personIdOf(people.issuer, "bert"), team: "other" });
  const elsewhere = (await signInAt("operations", "ada")).cookie;
  const refused: readonly (readonly [what: string, sent: Sent, status: number, words: string])[] = [
    ["another member's key", { headers: byKey(ofBert) }, 401, "does not exist or has been revoked"],
    ["a key of nobody", { headers: byKey("0aB1cD2eF3gH") }, 401, "does not exist or has been revoked"],
    ["a key of the site", { headers: byKey((await site.issue()).record.id) }, 401, "does not exist"],
    ["an own admin key", { headers: byKey(await issue({ kind: "admin", team: undefined })) }, 401, "does not exist"],
    ["a revoked key", { headers: byKey(revoked) }, 401, "does not exist or has been revoked"],
    ["a disabled key", { headers: byKey(disabled) }, 401, "disabled"],
    ["an expired key", { headers: byKey(await issue({ ttlMs: 1 })) }, 401, "expired"],
    ["a key of a team that the person is not in", { headers: byKey(await issue({ team: "other" })) }, 401, "no member"],
    ["no key", { headers: own }, 400, "x-trunkline-key"],
    ["two keys", { headers: byKey(`${valid}, ${ofBert}`) }, 400, "x-trunkline-key"],
    ["no session", { cookie: undefined }, 401, "Nobody is signed in"],
    ["the other port's session", { cookie: elsewhere }, 401, "Nobody is signed in"],
    [
      "the other port's token",
      { cookie: `__Host-trunkline_member=${elsewhere.split("=")[1]}` },
      401,
      "session has ended",
    ],
    ["a page of another origin", { headers: { ...byKey(valid), "sec-fetch-site": "same-site" } }, 403, "own page"],
    ["a form", { headers: { "x-trunkline-key": valid } }, 403, "own page"],
    ["a foreign name", { host: "evil.example" }, 400, "Host header"],
    ["the operations port", { port: "operations" }, 401, "admin key"],
  ];
  for (const [what, sent, status, words] of refused) {
    const { json, status: got } = await chatBy(valid, { cookie, ...sent });
    expect([what, got, json.error.message]).toEqual([what, status, expect.stringContaining(words)]);
  }
  expect((await chatBy(valid, { cookie })).status).toBe(200);
});

test.each([
  [
    "the member signs out",
    "This session has ended",
    (cookie: string) => send("DELETE", "/console/session", { cookie }),
  ],
  [
    "their key is revoked",
    "has been revoked",
    (cookie: string, id: string) => send("POST", `${api}/keys/${id}/revoke`, { cookie, body: {} }),
  ],
  [
    "they are disabled",
    "has been disabled",
    () => enablePerson(personIdOf(people.issuer, "quin"), false, { ...site.store, actor: { by: "the operator" } }),
  ],
])("a running answer of the playground ends when %s", async (_, words, end) => {
  people.claims.set("quin", { groups: ["research"] });
  const cookie = await memberCookie("quin");
  const { id } = (await send("POST", `${api}/keys`, { cookie, body: { name: "x" } })).json;
  const begun = Promise.withResolvers<void>();
  const body = { ...hello, stream: true, messages: [{ role: "user", content: "script tokens=2000 delay_ms=20" }] };
  const answer = chatBy(id, { cookie, body, onPiece: begun.resolve });
  await begun.promise;
  await end(cookie, id);
  expect((await answer).text).toContain(words);
});

test.each([
  [{ name: "x", ttl: "31d" }, "ttl", "30d at most"],
  [{ name: "x", scopes: ["*"] }, "scopes", "only script*"],
  [{ name: "x", rpm: 61 }, "rpm", "60 at most"],
  [{ name: "x", budget: { tokens: 1_001, per: "month" } }, "budget", "1k/month at most"],
  [{ name: "x", budget: { tokens: 1, per: "day" } }, "budget", "1k/month at most"],
  [{ name: "x", team: "other" }, "team", "one of your teams: research"],
  [{ name: "x", kind: "admin" }, "kind", "kind"],
  [{ name: "x", external: true }, "external", "external"],
])("a key of a member with %j is refused, and the bound is named", async (body, param, words) => {
  const { status, json } = await send("POST", `${api}/keys`, { cookie: await memberCookie("anna"), body });
  expect([status, json.error.param]).toEqual([400, param]);
  expect(json.error.message).toContain(words);
});

test("a member has no more keys at once than the team allows, also when they are made at once", async () => {
  people.claims.set("carl", { groups: ["research"] });
  const cookie = await memberCookie("carl");
  const make = () => send("POST", `${api}/keys`, { cookie, body: { name: "x" } });
  const made = await Promise.all(Array.from({ length: 8 }, make));
  const refused = made.filter(({ status }) => status !== 201);
  expect(refused[0]?.json.error).toMatchObject({
    code: "key_change_refused",
    message: expect.stringContaining("3 keys"),
  });
  const { json } = await send("GET", `${api}/keys`, { cookie });
  expect(json.data.filter(({ state }: { state: string }) => state === "valid").length).toBeLessThanOrEqual(3);
});

test("a key that is stored late, as by a gateway whose clock is behind, is not one more than the team allows", async () => {
  people.claims.set("cleo", { groups: ["research"] });
  const cookie = await memberCookie("cleo");
  const make = async () => (await send("POST", `${api}/keys`, { cookie, body: { name: "x" } })).status;
  expect([await make(), await make()]).toEqual([201, 201]);
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { keys } = site.store;
  const issue = keys.issue.bind(keys);
  const held = vi.spyOn(keys, "issue").mockImplementationOnce(async (...given) => {
    begun.resolve();
    await goOn.promise;
    return issue(...given);
  });
  onTestFinished(() => held.mockRestore());
  const late = make();
  await begun.promise;
  expect(await make()).toBe(201);
  goOn.resolve();
  expect(await late).toBe(409);
});

test.each([
  ["a list without a team or a role", ["guests"]],
  ["an object", { research: "research" }],
  ["a list in a list", [["research"]]],
  ["absent", undefined],
])("a person whose claim is %s gets no session", async (_, groups) => {
  people.claims.set("eve", { groups, email: "anna@example.org", email_verified: true });
  const { at, cookie } = await signInAt("public", "eve");
  expect([at, cookie]).toEqual(["/console#refused=no_role", ""]);
});

test("a member whose address changes at the provider has their keys, and nobody who gets the old address does", async () => {
  people.claims.set("dora", { groups: ["research"], email: "dora@example.org", email_verified: true });
  const { id } = await useNewKey(await memberCookie("dora"), "dora's");
  people.claims.set("dora", { groups: ["research"], email: "dora@new.example", email_verified: true });
  people.claims.set("fred", { groups: ["research"], email: "dora@example.org", email_verified: true });
  const listed = async (person: string) =>
    (await send("GET", `${api}/keys`, { cookie: await memberCookie(person) })).text;
  expect(await listed("dora")).toContain(id);
  expect(await listed("fred")).not.toContain(id);
});

test("the session of a person who is disabled ends at once, and they get no other one", async () => {
  people.claims.set("gina", { groups: ["staff"] });
  const cookie = await memberCookie("gina");
  const { keys, peppers, clock } = site.store;
  const by = { ...site.store, keys, peppers, clock, actor: { by: "the operator" } };
  await enablePerson(personIdOf(people.issuer, "gina"), false, by);
  expect((await send("GET", `${api}/me`, { cookie })).status).toBe(401);
  expect((await signInAt("public", "gina")).at).toBe("/console#refused=no_role");
  people.claims.set("gina", { groups: ["staff", "ops"] });
  expect((await signInAt("operations", "gina")).at).toBe("/console#refused=no_role");
  await enablePerson(personIdOf(people.issuer, "gina"), true, by);
  const again = await memberCookie("gina");
  const states = [cookie, again].map(async (each) => (await send("GET", `${api}/me`, { cookie: each })).status);
  expect(await Promise.all(states)).toEqual([401, 200]);
});

test("a person who is disabled while they sign in to the console gets no session", async () => {
  people.claims.set("nora", { groups: ["staff", "ops"] });
  await memberCookie("nora");
  const { keys } = site.store;
  const issue = keys.issue.bind(keys);
  const held = vi.spyOn(keys, "issue").mockImplementationOnce(async (...given) => {
    await enablePerson(personIdOf(people.issuer, "nora"), false, { ...site.store, actor: { by: "the operator" } });
    return issue(...given);
  });
  onTestFinished(() => held.mockRestore());
  expect((await signInAt("operations", "nora")).at).toBe("/console#refused=no_role");
});

test("a key for models that an admin disables keeps its person out of no console", async () => {
  people.claims.set("mona", { groups: ["research", "ops"] });
  const cookie = await memberCookie("mona");
  const { id } = (await send("POST", `${api}/keys`, { cookie, body: { name: "x" } })).json;
  await changeKey(id, { action: "disabled" }, { ...site.store, actor: { by: "the operator" } });
  expect((await signInAt("operations", "mona")).at).toBe("/console");
});

test("an invited address has no case, and a name that is cut between two halves of a character is taken", async () => {
  await addTeam(site.store, "guests", { invited: ["kim@example.org"] });
  people.claims.set("kim", { email: "Kim@Example.org", email_verified: true });
  const { json } = await send("GET", `${api}/me`, { cookie: await memberCookie("kim") });
  expect(json.teams).toMatchObject([{ team: "guests" }]);
  people.claims.set("lea", { groups: ["research"], email: `${"l".repeat(99)}\u{1f600}@example.org` });
  await memberCookie("lea");
});

test("a person whose subject has more than 1,000 characters is refused at both ports, and one with 1,000 is let in", async () => {
  for (const length of [1_000, 1_001]) people.claims.set("s".repeat(length), { groups: ["ops"] });
  for (const port of ["public", "operations"] as const) {
    const { at, cookie } = await signInAt(port, "s".repeat(1_001));
    expect([at, cookie]).toEqual(["/console#refused=long_subject", ""]);
    expect((await signInAt(port, "s".repeat(1_000))).at).toBe("/console");
  }
});

test("a cookie behind a space that browsers do not know as one is no cookie of a member", async () => {
  const cookie = await memberCookie("anna");
  expect((await send("GET", `${api}/me`, { cookie: `a=b;\u00a0${cookie}` })).status).toBe(401);
  expect((await send("GET", `${api}/me`, { cookie: `a=b;\t ${cookie}` })).status).toBe(200);
});

test("a member signs out here, or in all browsers, and leaves the sessions of others", async () => {
  const [here, there, other] = [await memberCookie("anna"), await memberCookie("anna"), await memberCookie("bert")];
  const states = async () =>
    Promise.all([here, there, other].map(async (cookie) => (await send("GET", `${api}/me`, { cookie })).status));
  expect(
    (await send("DELETE", "/console/session", { cookie: here, headers: { "sec-fetch-site": "same-site" } })).status,
  ).toBe(403);
  expect((await send("DELETE", "/console/session?everywhere", { cookie: here })).status).toBe(200);
  expect(await states()).toEqual([401, 401, 200]);
});

test("members' sign-ins are refused with the name of a gateway of 0.2.0 that runs beside", async () => {
  const before = (await site.store.people.list()).length;
  const beside = vi.spyOn(site.store.keys, "gateways");
  onTestFinished(() => beside.mockRestore());
  beside.mockResolvedValue([{ name: "attic", version: "0.2.0", token: "x" }]);
  const { at, cookie } = await signInAt("public", "hugo");
  expect([at, cookie]).toEqual(["/console#refused=older.attic", ""]);
  expect(await site.store.people.list()).toHaveLength(before);
});

test("a member who sends more requests than the bound is told so, and others are not kept out", async () => {
  people.claims.set("ivan", { groups: ["research"] });
  const [cookie, other] = [await memberCookie("ivan"), await memberCookie("bert")];
  const unknown = () => send("GET", `${api}/requests/req_unknown`, { cookie });
  const all = await Promise.all(Array.from({ length: memberRequestsPerMinuteMax + 50 }, unknown));
  const refused = all.find(({ status }) => status === 429);
  expect(refused?.json.error.message).toContain("memberRequestsPerMinuteMax");
  expect((await send("GET", `${api}/me`, { cookie: other })).status).toBe(200);
});

describe("the pages of members", () => {
  test("are static, take no foreign name and no other origin, and a change needs a header of the page", async () => {
    const page = await send("GET", "/console/keys", { headers: { origin: "https://app.example" } });
    expect(page.text).toContain("/console/console.js");
    expect(page.headers["content-security-policy"]).toContain("script-src 'self'");
    expect(page.headers["access-control-allow-origin"]).toBeUndefined();
    for (const path of ["/console", "/console/session", `${api}/me`, "/console/openid"])
      expect((await send("GET", path, { host: "evil.example" })).status).toBe(400);
    const cookie = await memberCookie("anna");
    const cors = await send("GET", `${api}/me`, { cookie, headers: { origin: "https://app.example" } });
    expect(cors.headers["access-control-allow-origin"]).toBeUndefined();
    for (const headers of [
      {},
      { "sec-fetch-site": "cross-site", "x-trunkline-console": "1" },
      { "sec-fetch-site": "same-site", "x-trunkline-console": "1" },
    ])
      expect((await send("POST", `${api}/keys`, { cookie, headers, body: { name: "x" } })).status).toBe(403);
  });

  test("have none of the script of the operations port's console", async () => {
    const { text } = await send("GET", "/console/console.js");
    const found = ["Pair a machine", "Issue a key", "/admin/v1/events", "makeSignInLink"].filter((words) =>
      text.includes(words),
    );
    expect(found).toEqual([]);
  });

  test("are not there without the role member, and need TLS", async () => {
    const env = { ...people.settings, TRUNKLINE_OIDC_ROLES: "ops=admin", TRUNKLINE_PUBLIC_URL: publicUrl };
    await using plain = await startGatewayInProcess({ env });
    const { status } = await fetch(`${new URL(plain.baseUrl).origin}/console`);
    expect(status).toBe(404);
    for (const url of [undefined, "http://models.example.org", publicUrl]) {
      const roles = { ...env, TRUNKLINE_OIDC_ROLES: "*=member", TRUNKLINE_PUBLIC_URL: url };
      expect(() => gatewayConfig(roles)).toThrow(ConfigFailure);
    }
  });
});

test("wrong cookies, sign-ins and codes of logins count as guesses of their address", async () => {
  const { clock } = site.store;
  const badKeys = new BadKeys(clock);
  const log = createLog({ level: "silent", name: "gateway" });
  const { openId: settings } = gatewayConfig(environment());
  if (settings === undefined) throw new Error("the test has no provider");
  const codes = new OwnIdempotencyRecords(clock);
  const openId = new OpenId(settings, { ...site.store, usedStates: codes, log });
  const server = createServer({ log, bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" });
  onTestFinished(() => server.close());
  const rest = { usage: openUsage(site.store.state), requests: noRequests, modelsOf: async () => [], log };
  const mountPlayground = (): void => undefined;
  serveMembers(server, {
    ...site.store,
    ...rest,
    openId,
    codes,
    publicUrl,
    badKeys,
    mountPlayground,
    currency: "units",
  });
  const cookie = `__Host-trunkline_member=trunkline_member_${"0".repeat(12)}_${"0".repeat(32)}`;
  const headers = { ...own, host: "models.example.org", cookie };
  const [state, verifier, code] = ["s".repeat(43), "v".repeat(43), "c".repeat(22)];
  const login = {
    method: "POST",
    url: loginKeyPath,
    headers,
    payload: { port: 5_000, state, verifier, code },
  } as const;
  // A third of the guesses of a minute are of each kind, and some more, since time passes.
  for (let sent = 0; sent < badKeysPerMinuteMax * 0.4; sent += 1) {
    expect((await server.inject(login)).statusCode).toBe(400);
    expect((await server.inject({ url: `${api}/me`, headers })).statusCode).toBe(401);
    expect((await server.inject({ url: "/console/openid/done?code=x&state=x", headers })).statusCode).toBe(303);
  }
  expect(badKeys.hasTooMany("127.0.0.1")).toBe(true);
});
