import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { setPrice } from "../harness/set-records.ts";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { freePort } from "../harness/free-port.ts";
import { type GatewayInProcess, startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { OpenIdPeople } from "../harness/openid-people.ts";
import { makeSelfSigned } from "../harness/self-signed.ts";
import { addTeam } from "../harness/add-team.ts";
import { ConsolePage } from "./console-page.ts";

const found = await findBrowser();

describe.skipIf(found.path === undefined)("members at the public port", () => {
  let browser: Browser;
  let people: OpenIdPeople;
  let site: GatewayInProcess;
  let publicUrl: string;
  beforeAll(async () => {
    publicUrl = `https://127.0.0.1:${await freePort()}`;
    people = await OpenIdPeople.start(`${publicUrl}/console/openid/done`);
    site = await startGatewayInProcess({
      env: {
        ...people.settings,
        ...(await makeSelfSigned()),
        TRUNKLINE_OIDC_ROLES: "ops=admin,*=member",
        TRUNKLINE_PUBLIC_URL: publicUrl,
        TRUNKLINE_CURRENCY: "EUR",
        TRUNKLINE_PORT: new URL(publicUrl).port,
      },
    });
    await site.issue();
    await setPrice("script*", { output: 600_000 }, { ...site.store, actor: { by: "the operator" } });
    await addTeam(site.store, "research", {
      scopes: ["script*"],
      limits: { budget: { tokens: 10_000, per: "month" } },
    });
    people.claims.set("anna", { groups: ["research"], email: "anna@example.org", email_verified: true });
    people.claims.set("otto", { groups: ["research"], email: "otto@example.org" });
    people.claims.set("eve", { groups: ["guests"], email: "<img src=x onerror=alert(1)>" });
    browser = await launchBrowser(found.path ?? "");
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    await site?.[Symbol.asyncDispose]();
    await people?.[Symbol.asyncDispose]();
  });

  async function signedIn(person: string): Promise<ConsolePage> {
    const own = await ConsolePage.open(browser, publicUrl);
    onTestFinished(() => own[Symbol.asyncDispose]());
    people.expect(person);
    await own.go("");
    await own.enter("link", /Sign in with 127\.0\.0\.1/);
    await own.heading("Keys");
    return own;
  }

  /** Leaves the window of a key, which asks first. Its heading has a button with the name "Close" too. */
  async function leaveKey(own: ConsolePage): Promise<void> {
    await own.enter("button", "Done");
    await own.page.getByRole("button", { name: "Cancel" }).and(own.page.locator(":focus")).waitFor();
    await own.enter("button", "Close");
    await own.page.getByRole("dialog").waitFor({ state: "detached" });
  }

  test("a member makes a key by keyboard alone, uses it, sees its use, renews and revokes it", async () => {
    const own = await signedIn("anna");
    await own.enter("button", "Make a key");
    await own.page.getByLabel("Name").and(own.page.locator(":focus")).waitFor();
    await own.page.keyboard.type("my laptop");
    await own.page.keyboard.press("Enter");
    await own.sees(/The key is shown only once/);
    const key = (await own.page.getByLabel("The key", { exact: true }).textContent())?.trim() ?? "";
    const answer = await own.page.request.post(`${publicUrl}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${key}` },
      data: { model: "scripted", messages: [{ role: "user", content: "Hello" }] },
    });
    expect(answer.status()).toBe(200);
    await leaveKey(own);
    await own.page.getByRole("row", { name: /my laptop.*valid/ }).waitFor();
    await own.enter("link", "Requests");
    await own.page.getByRole("row", { name: /scripted.*ok/ }).waitFor();
    await own.enter("link", "Models");
    await own.page.getByRole("row", { name: /scripted completion/ }).waitFor();
    await own.enter("link", "Keys");
    await own.page.getByRole("row", { name: /my laptop.*valid/ }).waitFor();
    await own.enter("button", "New secret");
    await own.sees(/The key gets a new secret/);
    await own.enter("button", "New secret");
    await own.sees(/The key is shown only once/);
    await leaveKey(own);
    await own.enter("button", "Revoke");
    await own.sees(/It cannot be undone/);
    await own.enter("button", "Revoke");
    await own.page.getByRole("row", { name: /my laptop.*revoked/ }).waitFor();
    await own.enter("button", "Sign out");
    await own.sees("Sign in to make keys");
    expect(own.complaints).toEqual([]);
  });

  test("a member chats with a model in the playground by a key of their own, stops an answer, and sees tokens and cost", async () => {
    const own = await signedIn("otto");
    const { page } = own;
    await own.enter("link", "Playground");
    await own.sees("you have no valid one");
    for (const name of ["phone", "laptop"]) {
      const body = { data: { name }, headers: { "x-trunkline-console": "1" } };
      expect((await page.request.post(`${publicUrl}/console/member/v1/keys`, body)).status()).toBe(201);
    }
    await own.go("/playground?model=scripted:plain");
    await page.getByLabel("Key", { exact: true }).selectOption("laptop (research)");
    await own.fill("Message", "script tokens=500 delay_ms=20");
    await page.getByLabel("Message").press("Enter");
    await own.sees(/token-3 /);
    await own.click("Stop");
    await own.sees("Stopped.");
    await own.fill("Message", "Hello");
    await own.click("Send");
    await own.sees(/\d+ tokens · prompt of \d+.* · [\d.]+ EUR · /);
    await own.click("Copy as code");
    await page.getByLabel("curl", { exact: true }).getByText(`${publicUrl}/v1/chat/completions`).waitFor();
    await page.keyboard.press("Escape");
    await own.fill("Message", "script nonce=more tokens=500 delay_ms=20");
    await page.getByLabel("Message").press("Enter");
    await own.sees("more-3 ");
    const key = page.locator("select");
    const revoke = `${publicUrl}/console/member/v1/keys/${await key.inputValue()}/revoke`;
    await page.request.post(revoke, { data: {}, headers: { "x-trunkline-console": "1" } });
    await own.sees("This API key has been revoked.");
    await key.getByText("laptop").waitFor({ state: "detached" });
    expect(await key.innerText()).toBe("phone (research)");
    await page.getByRole("link", { name: "What happened" }).click();
    await own.heading("Request");
    await own.enter("link", "Requests");
    await page.getByRole("row", { name: /scripted:plain ok laptop/ }).waitFor();
    await page.getByRole("row", { name: /scripted:plain client_closed laptop/ }).waitFor();
    expect(own.complaints).toEqual([]);
  });

  test("a member in no team is told so, and a hostile name is shown as text", async () => {
    const own = await signedIn("eve");
    await own.sees("You are in no team yet");
    await own.sees("<img src=x onerror=alert(1)>");
    expect(await own.page.getByRole("button", { name: "Make a key" }).count()).toBe(0);
    expect(own.complaints).toEqual([]);
  });

  test("the pages of members fit a phone", async () => {
    const own = await signedIn("anna");
    await own.page.setViewportSize({ width: 360, height: 740 });
    for (const page of ["Keys", "Usage", "Requests", "Models", "Playground"]) {
      await own.go(page === "Keys" ? "" : `/${page.toLowerCase()}`);
      await own.heading(page);
      expect([page, await own.page.evaluate("document.documentElement.scrollWidth")]).toEqual([page, 360]);
    }
  });
});
