import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Browser } from "playwright-core";
import { Provider } from "oidc-provider";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { freePort } from "../harness/free-port.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { ConsolePage } from "./console-page.ts";

const found = await findBrowser();
const groups: Readonly<Record<string, readonly string[]>> = {
  ada: ["ops", "staff"],
  bob: ["staff"],
  nia: ["night"],
  eve: [],
};

describe.skipIf(found.path === undefined)("people who sign in by OpenID", () => {
  let browser: Browser;
  let provider: Server;
  let up: UpProcess;
  beforeAll(async () => {
    const operationsPort = await freePort();
    const providerPort = await freePort();
    const issuer = `http://127.0.0.1:${providerPort}`;
    const redirectUri = `http://127.0.0.1:${operationsPort}/console/openid/done`;
    const openId = new Provider(issuer, {
      clients: [{ client_id: "console", client_secret: "a secret of the client", redirect_uris: [redirectUri] }],
      claims: { openid: ["sub", "groups"], email: ["email"] },
      conformIdTokenClaims: false,
      findAccount: (_, id) => ({
        accountId: id,
        claims: () => ({ sub: id, email: `${id}@example.org`, groups: groups[id] ?? [] }),
      }),
      cookies: { keys: ["a key for cookies"] },
    });
    const answer = openId.callback();
    provider = createServer((request, response) => void answer(request, response)).listen(providerPort, "127.0.0.1");
    await once(provider, "listening");
    [browser, up] = await Promise.all([
      launchBrowser(found.path ?? ""),
      startUp({
        TRUNKLINE_OPERATIONS_PORT: String(operationsPort),
        TRUNKLINE_OIDC_ISSUER: issuer,
        TRUNKLINE_OIDC_CLIENT_ID: "console",
        TRUNKLINE_OIDC_CLIENT_SECRET: "a secret of the client",
        TRUNKLINE_OIDC_ROLES: "ops=admin,night=operator,staff=viewer",
      }),
    ]);
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    await up?.[Symbol.asyncDispose]();
    provider?.closeAllConnections();
    provider?.close();
  });

  async function signIn(person: string): Promise<ConsolePage> {
    const own = await ConsolePage.open(browser, up.operationsUrl);
    onTestFinished(() => own[Symbol.asyncDispose]());
    await own.go("");
    await own.page.getByRole("link", { name: /Sign in with 127\.0\.0\.1/ }).click();
    await own.page.locator("input[name=login]").fill(person);
    await own.page.locator("input[name=password]").fill("any");
    await own.page.locator("button[type=submit]").click();
    await own.page.locator("button[type=submit]").click();
    return own;
  }

  const settings = () => ({ TRUNKLINE_STATE_DIR: up.stateDir, TRUNKLINE_OPERATIONS_URL: up.operationsUrl });

  test("a person with the claim of admins changes the site under their own name", async () => {
    const own = await signIn("ada");
    await own.heading("Overview");
    await own.sees(/ada@example\.org \(OpenID/);
    await own.go("/keys?issue=new");
    await own.fill("Name", "made by ada");
    await own.click("Issue");
    await own.sees(/The key is shown only once/);
    const { stdout } = await trunkline(["sessions", "--json"], settings());
    expect(JSON.parse(stdout).sessions).toEqual([expect.objectContaining({ kind: "session", role: "admin" })]);
    await own.go("/trail");
    await own.page.getByRole("row", { name: /signed in with.*ada@example\.org.*role admin/ }).waitFor();
    const log = await trunkline(["keys", "log"], settings());
    expect(log.stdout).toMatch(/signed_in.*ada@example\.org/);
    expect(own.complaints).toEqual([]);
  });

  test("a person with the claim of viewers reads, and changes nothing", async () => {
    const own = await signIn("bob");
    await own.heading("Overview");
    await own.go("/keys");
    await own.heading("Keys");
    await own.page
      .getByRole("row", { name: /trunkline up/ })
      .first()
      .waitFor();
    expect(await own.page.getByRole("button", { name: "Issue a key" }).count()).toBe(0);
    const elsewhere = await signIn("bob");
    await elsewhere.heading("Overview");
    await own.click("Sign out everywhere");
    await own.page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
    await own.sees("Or paste a key");
    await elsewhere.page.reload();
    await elsewhere.sees("Or paste a key");
  });

  test("an operator changes machines and no keys, also by hand-made requests", async () => {
    const own = await signIn("nia");
    await own.heading("Overview");
    await own.go("/machines");
    await own.page.getByRole("button", { name: "Pair a machine" }).waitFor();
    await own.go("/keys");
    await own.page
      .getByRole("row", { name: /trunkline up/ })
      .first()
      .waitFor();
    expect(await own.page.getByRole("button", { name: "Issue a key" }).count()).toBe(0);
    const statusOf = (method: string, path: string, data: object) =>
      own.page.request
        .fetch(`${up.operationsUrl}/admin/v1${path}`, { method, data, headers: { "x-trunkline-console": "1" } })
        .then((answer) => answer.status());
    expect(await statusOf("POST", "/keys", { name: "x" })).toBe(403);
    expect(await statusOf("POST", "/sessions/links", {})).toBe(403);
    expect(await statusOf("DELETE", "/sessions", {})).toBe(403);
    expect(await statusOf("PUT", "/routes/gpt-4o", { targets: [{ model: "scripted" }] })).toBe(200);
  });

  test("a person without a role is told so, and so is one whose key was disabled", async () => {
    const eve = await signIn("eve");
    await eve.sees("You have no role here");
    const { stdout } = await trunkline(["keys", "list", "--json"], settings());
    const keys = JSON.parse(stdout) as readonly { readonly id: string; readonly name: string }[];
    const bob = keys.find(({ name }) => name.startsWith("bob@"));
    expect((await trunkline(["keys", "disable", bob?.id ?? ""], settings())).exitCode).toBe(0);
    const again = await signIn("bob");
    await again.sees("You have no role here");
  });

  test("an answer of the provider that this browser did not ask for opens no session", async () => {
    const own = await ConsolePage.open(browser, up.operationsUrl);
    onTestFinished(() => own[Symbol.asyncDispose]());
    await own.go("/openid/done?code=stolen&state=stolen");
    await own.sees("That sign-in took too long");
    expect(await own.page.context().cookies()).toEqual([]);
  });
});
