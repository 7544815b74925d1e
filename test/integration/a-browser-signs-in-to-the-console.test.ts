import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { changeKey } from "#shared/records/change-key.ts";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { linkMs, sessionMs } from "#shared/records/session-record.ts";
import { badKeysPerMinuteMax } from "../../services/gateway/keys/bad-keys.ts";
import { sqlitePlace } from "../contract/key-store-place.ts";
import { AdminOnStore, noMachines, noRecords } from "../unit/gateway/operations/admin-on-a-store.ts";

let api: AdminOnStore;
beforeEach(async () => {
  const place = await sqlitePlace();
  api = new AdminOnStore(await place.open(), noMachines, noRecords(), await place.openSessions());
});

const own = { "sec-fetch-site": "same-origin", "x-trunkline-console": "1" };

interface Sent {
  readonly cookie?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

async function send(method: "GET" | "POST" | "DELETE", url: string, { cookie, headers = own, body }: Sent = {}) {
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const all = { ...headers, ...type, ...(cookie !== undefined && { cookie }) };
  return api.server.inject({ method, url, headers: all, ...(body !== undefined && { payload: JSON.stringify(body) }) });
}

const issueAdmin = async (kind: "admin" | "viewer" = "admin") => api.issue({ kind });
const signIn = (token: string) => send("POST", "/console/session", { body: { token } });

/** Returns the cookie of a browser that signed in. */
async function cookieOf(token: string): Promise<string> {
  const { statusCode, headers } = await signIn(token);
  expect(statusCode).toBe(201);
  return String(headers["set-cookie"]).split(";")[0] ?? "";
}

async function makeLink(role: "admin" | "viewer" = "admin") {
  const admin = await issueAdmin();
  const { json } = await api.ask("POST", "/sessions/links", { key: admin.token.reveal(), body: { role } });
  return { admin, token: String(json["token"]), url: String(json["url"]) };
}

test("a sign-in link opens a session once, and stands in the address where no log gets it", async () => {
  const { token, url } = await makeLink();
  expect(url).toBe(`http://127.0.0.1:8081/console#sign-in=${token}`);
  const cookie = await cookieOf(token);
  const me = await send("GET", "/admin/v1/me", { cookie });
  expect(me.json()).toMatchObject({ role: "admin", session: { kind: "session" } });
  const again = await signIn(token);
  expect([again.statusCode, again.json().error.message]).toEqual([401, expect.stringContaining("trunkline console")]);
  expect(api.logged.join("\n")).not.toContain(token.slice(-32));
});

test("a sign-in link is refused after ten minutes", async () => {
  const { token } = await makeLink();
  api.clock.advance(linkMs);
  expect((await signIn(token)).statusCode).toBe(401);
});

test("a sign-in link is refused when the key that made it was revoked", async () => {
  const { token, admin } = await makeLink();
  await changeKey(admin.record.id, { action: "revoked" }, api.means());
  expect((await signIn(token)).statusCode).toBe(401);
});

test("a sign-in link for a viewer opens a session that changes nothing, also by hand-made requests", async () => {
  const { token } = await makeLink("viewer");
  const cookie = await cookieOf(token);
  expect((await send("GET", "/admin/v1/keys", { cookie })).statusCode).toBe(200);
  for (const [method, path] of [
    ["POST", "/keys"],
    ["POST", "/sessions/links"],
    ["DELETE", "/sessions"],
  ] as const) {
    const refused = await send(method, `/admin/v1${path}`, { cookie, body: { name: "x" } });
    expect([refused.statusCode, refused.json().error.code]).toEqual([403, "insufficient_permissions"]);
  }
});

test("a session has a cookie that no script reads and no other site sends", async () => {
  const { headers } = await signIn((await issueAdmin()).token.reveal());
  expect(headers["set-cookie"]).toMatch(/^trunkline_session=\S+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
  expect(headers["cache-control"]).toBe("no-store");
});

test("a session ends after twelve hours, when it is ended, and with its key", async () => {
  const admin = await issueAdmin();
  const text = admin.token.reveal();
  const reads = async (cookie: string) => (await send("GET", "/admin/v1/keys", { cookie })).statusCode;
  const lapsing = await cookieOf(text);
  expect(await reads(lapsing)).toBe(200);
  api.clock.advance(sessionMs);
  expect(await reads(lapsing)).toBe(401);

  const ended = await cookieOf(text);
  const [{ id }] = (await send("GET", "/admin/v1/sessions", { cookie: ended })).json().data;
  expect((await api.ask("DELETE", `/sessions/${id}`, { key: text })).json).toEqual({ ended: [id] });
  expect(await reads(ended)).toBe(401);
  expect((await api.ask("DELETE", `/sessions/${id}`, { key: text })).status).toBe(404);

  const signedOut = await cookieOf(text);
  expect((await send("DELETE", "/console/session", { cookie: signedOut })).statusCode).toBe(200);
  expect(await reads(signedOut)).toBe(401);

  const revoked = await cookieOf(text);
  await changeKey(admin.record.id, { action: "disabled" }, api.means());
  expect(await reads(revoked)).toBe(401);
});

test("a session ends everywhere, with the other sessions and links of its key alone, when its holder says so", async () => {
  const [text, foreign] = [(await issueAdmin()).token.reveal(), (await issueAdmin()).token.reveal()];
  const [here, there, other] = [await cookieOf(text), await cookieOf(text), await cookieOf(foreign)];
  const link = await api.ask("POST", "/sessions/links", { key: text, body: { role: "admin" } });
  await send("DELETE", "/console/session?everywhere", { cookie: here });
  const states = [here, there, other].map(async (cookie) => (await send("GET", "/admin/v1/me", { cookie })).statusCode);
  expect(await Promise.all(states)).toEqual([401, 401, 200]);
  expect((await signIn(String(link.json["token"]))).statusCode).toBe(401);
});

test("a session that a link opened for a viewer or an operator ends itself alone, also everywhere", async () => {
  const text = (await issueAdmin()).token.reveal();
  const linkFor = async (role: string) =>
    String((await api.ask("POST", "/sessions/links", { key: text, body: { role } })).json["token"]);
  const admin = await cookieOf(text);
  for (const role of ["viewer", "operator"]) {
    const unopened = await linkFor("admin");
    const cookie = await cookieOf(await linkFor(role));
    expect((await send("GET", "/admin/v1/me", { cookie })).json()).toMatchObject({ role, everywhere: false });
    const { ended } = (await send("DELETE", "/console/session?everywhere", { cookie })).json();
    expect(ended).toHaveLength(1);
    expect((await send("GET", "/admin/v1/me", { cookie })).statusCode).toBe(401);
    expect((await send("GET", "/admin/v1/me", { cookie: admin })).json()).toMatchObject({ everywhere: true });
    expect((await signIn(unopened)).statusCode).toBe(201);
  }
});

test("a session is good for requests of the console's own page only", async () => {
  const cookie = await cookieOf((await issueAdmin()).token.reveal());
  const statusOf = async (method: "GET" | "POST", headers: Readonly<Record<string, string>>) =>
    (await send(method, "/admin/v1/keys", { cookie, headers, ...(method === "POST" && { body: { name: "x" } }) }))
      .statusCode;
  expect(await statusOf("POST", own)).toBe(201);
  expect(await statusOf("GET", { "sec-fetch-site": "same-origin" })).toBe(200);
  // A page at another port of this host is of the same site, so that its requests have the cookie.
  for (const site of ["same-site", "cross-site"]) {
    expect(await statusOf("GET", { ...own, "sec-fetch-site": site })).toBe(403);
    expect(await statusOf("POST", { ...own, "sec-fetch-site": site })).toBe(403);
  }
  expect(await statusOf("POST", { "sec-fetch-site": "same-origin" })).toBe(403);
  expect(await statusOf("POST", {})).toBe(403);
});

test("a session names itself in the trail beside its key", async () => {
  const admin = await issueAdmin();
  const cookie = await cookieOf(admin.token.reveal());
  await send("POST", "/admin/v1/keys", { cookie, body: { name: "alice" } });
  const { data } = (await send("GET", "/admin/v1/log?limit=1", { cookie })).json();
  expect(data[0].by).toMatch(new RegExp(`^admin ${admin.record.id}, session [0-9A-Za-z]{12}$`));
});

test("a sign-in stands in the trail with its role and address, and is told to no gateway as a change", async () => {
  const { token, record } = await issueAdmin("viewer");
  const changed = await api.keys.log({ entriesMax: 100 });
  await cookieOf(token.reveal());
  expect(await api.keys.log({ entriesMax: 100 })).toEqual(changed);
  const { data } = (await api.ask("GET", `/log?key=${record.id}`, { key: token.reveal() })).json;
  expect(data).toEqual([
    expect.objectContaining({ action: "issued" }),
    expect.objectContaining({
      action: "signed_in",
      by: expect.stringMatching(new RegExp(`^admin ${record.id}, session [0-9A-Za-z]{12}$`)),
      key: record.id,
      name: record.name,
      detail: expect.objectContaining({ role: "viewer", address: "127.0.0.1" }),
    }),
  ]);
  const { data: latest } = (await api.ask("GET", "/log?limit=1", { key: token.reveal() })).json;
  expect(latest).toEqual([expect.objectContaining({ action: "signed_in" })]);
});

test("a pasted viewer key opens a viewer's session, and a key for models opens none", async () => {
  const cookie = await cookieOf((await issueAdmin("viewer")).token.reveal());
  expect((await send("GET", "/admin/v1/me", { cookie })).json().role).toBe("viewer");
  expect((await signIn((await api.issue()).token.reveal())).statusCode).toBe(403);
});

test("wrong links, keys and cookies are counted as guesses of their address", async () => {
  await issueAdmin();
  const guesses = [
    () => signIn(mintKeyToken("admin").reveal()),
    () => signIn(`trunkline_link_0aB1cD2eF3gH_${"a".repeat(32)}`),
    () =>
      send("GET", "/admin/v1/keys", { cookie: `trunkline_session=trunkline_session_0aB1cD2eF3gH_${"a".repeat(32)}` }),
  ];
  for (let sent = 0; sent < badKeysPerMinuteMax; sent += 1) {
    expect(api.badKeys.hasTooMany("127.0.0.1")).toBe(false);
    expect((await guesses[sent % guesses.length]?.())?.statusCode).toBe(401);
  }
  expect(api.badKeys.hasTooMany("127.0.0.1")).toBe(true);
  await cookieOf((await issueAdmin()).token.reveal());
});

describe("the way back from the OpenID provider", () => {
  let tokensAsked: number;
  let provider: Server;
  beforeEach(async () => {
    tokensAsked = 0;
    provider = createServer((request, response) => {
      if (request.url === "/token") tokensAsked += 1;
      const issuer = `http://${request.headers.host}`;
      const found = { issuer, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` };
      const refusal = { error: "invalid_grant", error_description: "no such code" };
      response.writeHead(request.url === "/token" ? 400 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(request.url === "/token" ? refusal : found));
    }).listen(0, "127.0.0.1");
    await once(provider, "listening");
    onTestFinished(() => void provider.close());
    const place = await sqlitePlace();
    const settings = { clientId: "console", clientSecret: "a secret", claim: "groups", roles: new Map() };
    const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
    const sessions = await place.openSessions();
    api = new AdminOnStore(await place.open(), noMachines, noRecords(), sessions, { ...settings, issuer });
  });

  const comeBack = (state: string, cookie: string) =>
    send("GET", `/console/openid/done?code=guessed&state=${state}`, { cookie, headers: {} });

  async function begin(): Promise<{ readonly state: string; readonly cookie: string }> {
    const { headers } = await send("GET", "/console/openid", { headers: {} });
    const [cookie = ""] = String(headers["set-cookie"]).split(";");
    return { cookie, state: new URL(String(headers.location)).searchParams.get("state") ?? "" };
  }

  test("the way back from the OpenID provider asks the provider once for each sign-in that this site began", async () => {
    const { state, cookie } = await begin();
    expect((await comeBack(state, cookie)).headers.location).toBe("/console#refused=refused");
    expect(tokensAsked).toBe(1);
    expect((await comeBack(state, cookie)).headers.location).toBe("/console#refused=not_begun");
    const kept = { state: "made-up", nonce: "made-up", verifier: "v".repeat(43) };
    const forged = `trunkline_openid=${Buffer.from(JSON.stringify(kept)).toString("base64url")}`;
    expect((await comeBack("made-up", forged)).headers.location).toBe("/console#refused=not_begun");
    const late = await begin();
    api.clock.advance(10 * 60_000);
    expect((await comeBack(late.state, late.cookie)).headers.location).toBe("/console#refused=not_begun");
    expect(tokensAsked).toBe(1);
  });

  test("logs a refusal on one short line with its reason", async () => {
    const { state, cookie } = await begin();
    const before = api.logged.length;
    await comeBack(state, cookie);
    const told = api.logged.slice(before).filter((line) => line.includes("a sign-in by OpenID was refused"));
    expect(told).toEqual([expect.stringContaining("invalid_grant: no such code")]);
    expect(told.join("").length).toBeLessThan(500);
  });

  test("the way back from the OpenID provider counts refusals as guesses of their address, and does not while the provider is away", async () => {
    const begun = await begin();
    await new Promise((resolve) => provider.close(resolve));
    for (let sent = 0; sent < badKeysPerMinuteMax; sent += 1) {
      const { state, cookie } = sent === 0 ? begun : await begin();
      expect((await comeBack(state, cookie)).headers.location).toBe("/console#refused=away");
    }
    for (let sent = 0; sent < badKeysPerMinuteMax; sent += 1) {
      expect(api.badKeys.hasTooMany("127.0.0.1")).toBe(false);
      await comeBack("made-up", "");
    }
    expect(api.badKeys.hasTooMany("127.0.0.1")).toBe(true);
  });
});

describe("the console's page", () => {
  test("is static, at every address below it, and allows no script or style of its own", async () => {
    const { body, headers } = await send("GET", "/console", { headers: {} });
    expect((await send("GET", "/console/machines/attic", { headers: {} })).body).toBe(body);
    expect(headers["content-security-policy"]).toContain("script-src 'self'; style-src 'self'");
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(headers["referrer-policy"]).toBe("no-referrer");
    expect(body).not.toMatch(/<script>|<style|style=/);
    const root = await send("GET", "/", { headers: {} });
    expect([root.statusCode, root.headers.location]).toEqual([302, "/console"]);
  });

  test("takes at most 120 KB with all its files, as a browser gets them", async () => {
    const files = ["", "/console.js", "/console.css", "/icon.svg"];
    const bodies = await Promise.all(files.map((file) => send("GET", `/console${file}`, { headers: {} })));
    expect(bodies.map(({ statusCode }) => statusCode)).toEqual(files.map(() => 200));
    const bytes = bodies.map(({ rawPayload }) => gzipSync(rawPayload).byteLength);
    expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThan(120_000);
  });
});
