import { holderOf } from "#shared/records/session-record.ts";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Endpoint } from "../harness/endpoint.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { OperatorSite } from "../harness/operator-site.ts";
import { startPairedAgent } from "../harness/start-trunkline.ts";
import { testPepper, trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { ConsolePage, signInLink } from "./console-page.ts";
import { brokenRules } from "./console-walk.ts";

const found = await findBrowser();
if (found.path === undefined) console.log(`Skipping the tests of the console: ${found.reason}.`);

describe.skipIf(found.path === undefined || lentOnly("nats", "redis"))("the console", () => {
  let browser: Browser;
  let site: OperatorSite;
  let adminKey: string;
  let link: () => Promise<string>;
  beforeAll(async () => {
    [browser, site] = await Promise.all([launchBrowser(found.path ?? ""), OperatorSite.start()]);
    adminKey = (await site.operator.issue({ kind: "admin", name: "ada" })).token.reveal();
    await site.operator.store.machines.noteSite({ publicUrl: site.originOf(0) });
    link = () => signInLink(operationsUrl(), adminKey);
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    await site?.[Symbol.asyncDispose]();
  });

  const operationsUrl = (place = 0): string => site.gateways[place]?.operationsUrl ?? "";

  async function openPage(): Promise<ConsolePage> {
    const opened = await ConsolePage.open(browser, operationsUrl());
    onTestFinished(() => opened[Symbol.asyncDispose]());
    return opened;
  }

  async function signedIn(...options: readonly string[]): Promise<ConsolePage> {
    const opened = await openPage();
    await opened.go(await signInLink(operationsUrl(), adminKey, ...options));
    await opened.heading("Overview");
    return opened;
  }

  test("a link signs in once, leaves the address at once, and is refused when it was used", async () => {
    const one = await openPage();
    const used = await link();
    await one.go(used);
    await one.heading("Overview");
    expect(one.page.url()).not.toContain("sign-in");
    const other = await openPage();
    await other.go(used);
    await other.sees(/This link was used before/);
    expect([...one.complaints, ...other.complaints]).toEqual([]);
  });

  test("a pasted key signs in, a wrong one is told, and signing out ends the session", async () => {
    const own = await openPage();
    await own.go("");
    await own.fill("Admin or viewer key", "trunkline_admin_wrong");
    await own.click("Sign in");
    await own.sees(/Incorrect API key/);
    await own.fill("Admin or viewer key", adminKey);
    await own.click("Sign in");
    await own.heading("Overview");
    await own.click("Sign out");
    await own.sees("Or paste a key");
    await own.page.reload();
    await own.sees("Or paste a key");
  });

  test("signing out says that it failed, and asks before it ends the sessions of other browsers", async () => {
    const [own, other] = [await signedIn(), await signedIn()];
    await own.page.route("**/console/session*", (route) => route.abort());
    await own.click("Sign out");
    await own.sees(/The gateway does not answer/);
    await own.heading("Overview");
    await own.page.unroute("**/console/session*");
    await own.click("Sign out everywhere");
    await own.sees(/in all browsers/);
    expect((await other.page.request.get(`${operationsUrl()}/admin/v1/me`)).status()).toBe(200);
    await own.page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
    await own.sees("Or paste a key");
    await other.page.reload();
    await other.sees("Or paste a key");
    const viewer = await signedIn("--viewer");
    await viewer.page.getByRole("button", { name: "Sign out", exact: true }).waitFor();
    expect(await viewer.page.getByRole("button", { name: "Sign out everywhere" }).count()).toBe(0);
  });

  test("an empty site is led to its first machine by one line to paste, and a demonstration is told as one and ticks no step off", async () => {
    const own = await signedIn();
    await own.sees("First steps");
    await own.page.getByRole("link", { name: "Pair a machine" }).click();
    await own.fill("Name", "home-4090");
    await own.click("Make the line");
    await own.sees(/Waiting for it/);
    const command = await own.page
      .getByLabel(/Paste this on the machine/)
      .first()
      .innerText();
    const [, join = ""] = /(trunkline-join:\S+|\S+#[0-9A-Za-z]{12}\.[\w-]+)/.exec(command) ?? [];
    const line = join.replaceAll(/^['"]|['"]$/g, "");
    const agent = await startPairedAgent({ line, machine: "home-4090" });
    onTestFinished(() => agent[Symbol.asyncDispose]());
    await own.sees(/is here/, 15_000);
    await own.go("/machines/home-4090");
    await own.sees("ready");
    await own.sees("scripted:vision");
    await own.go("");
    await own.sees(/Until then a demonstration answers/);
    const step = own.page.getByRole("listitem").filter({ hasText: "Pair a machine" });
    expect(await step.innerText()).not.toContain("Done");
    await own.go("/playground?model=scripted");
    await own.sees(/a demonstration: it always answers with the same text/);
    const ollama = await FakeOllama.start({ models: [{ name: "llama3.2:latest" }] });
    onTestFinished(() => ollama[Symbol.asyncDispose]());
    await site.startMachine("with-ollama", {
      env: { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url },
    });
    await own.go("");
    await step.getByText("Done").waitFor();
    expect(own.complaints).toEqual([]);
  });

  test("a machine that is killed is shown as offline within a second and a half of the gateway's knowledge", async () => {
    const agent = await site.startMachine("attic");
    const own = await signedIn();
    await own.go("/machines");
    const row = own.page.getByRole("row", { name: /attic/ });
    await row.getByText("ready").waitFor();
    await agent.kill();
    const knownAt = await until(
      async () => {
        const answer = await fetch(`${operationsUrl()}/admin/v1/fleet`, {
          headers: { authorization: `Bearer ${adminKey}` },
        });
        const { data } = (await answer.json()) as { data: { machine: string; status: string }[] };
        return data.find(({ machine }) => machine === "attic")?.status === "offline" && performance.now();
      },
      { what: "the gateway to know that attic is offline", timeoutMs: 10_000 },
    );
    await row.getByText("offline").waitFor({ timeout: 1_500 });
    expect(performance.now() - knownAt).toBeLessThan(1_500);
    await own.go("");
    await own.sees(/is offline/);
  });

  test("a failed request is found by its id, with its cause and what to do", async () => {
    const [endpoint] = site.endpoints;
    const answer = await endpoint?.chat({ model: "nobody-has-this", says: "Hello" });
    const id = answer?.headers.get("x-request-id") ?? "";
    const own = await signedIn();
    await own.go("/requests?outcome=failed");
    await own.page
      .getByRole("row", { name: /model_not_found/ })
      .first()
      .waitFor();
    await own.go(`/requests/${id}`);
    await own.sees(/The request ended with/);
    await own.sees(`trunkline requests show ${id}`);
    await own.page.getByText("arrived", { exact: true }).waitFor();
  });

  test("a click on the head of a column sorts a list, and a reload keeps the order", async () => {
    const own = await signedIn();
    await own.go("/keys?state=all");
    const head = own.page.getByRole("columnheader", { name: "name" });
    await head.getByRole("button").click();
    const names = () => own.page.locator("tbody td:first-child").allInnerTexts();
    const ascending = await names();
    expect(ascending.length).toBeGreaterThan(1);
    await head.getByRole("button").click();
    await own.page.locator('th[aria-sort="descending"]').waitFor();
    expect(await names()).toEqual(ascending.toReversed());
    await own.page.reload();
    await own.page.locator('th[aria-sort="descending"]').waitFor();
    expect(await names()).toEqual(ascending.toReversed());
  });

  test("a link puts the focus on the heading of its page, and the result of an action is announced", async () => {
    const own = await signedIn();
    const focused = (): Promise<string> => own.page.evaluate("document.activeElement.textContent");
    await own.page.getByRole("link", { name: "Keys" }).click();
    await own.heading("Keys");
    await until(async () => (await focused()) === "Keys", { what: "the heading to have the focus" });
    await own.click("Issue a key");
    await own.fill("Name", "focus");
    await own.click("Issue");
    await own.page.getByRole("status").filter({ hasText: "Issue: done." }).waitFor();
    await own.page.reload();
    await own.heading("Keys");
    expect(await focused()).not.toBe("Keys");
  });

  test("a request appears on the page as it ends, and Back and reload show the same again", async () => {
    const agent = await site.startMachine("loft");
    onTestFinished(() => agent[Symbol.asyncDispose]());
    await site.untilListed("scripted");
    const own = await signedIn();
    await own.go("/requests?model=scripted&key=test");
    await site.endpoints[1]?.chat({ model: "scripted", says: "/script tokens=3" });
    const row = own.page.getByRole("row", { name: /scripted.*ok.*test/ });
    await row.first().waitFor({ timeout: 5_000 });
    await row.first().getByRole("link").first().click();
    await own.heading("scripted");
    await own.page.goBack();
    await own.heading("Requests");
    expect(await own.page.getByLabel("Model").inputValue()).toBe("scripted");
    await own.page.reload();
    await row.first().waitFor();
    expect(own.complaints).toEqual([]);
  });

  test("a running request is cancelled from its row, and ends below with its code; while the page pauses the end is only counted", async () => {
    const agent = await site.startMachine("barn");
    onTestFinished(() => agent[Symbol.asyncDispose]());
    await site.untilListed("scripted");
    const own = await signedIn();
    await own.go("/requests?model=script");
    await own.sees("No request is running.");
    const stream = await site.endpoints[0]?.stream({ model: "scripted", says: "/script tokens=3000 delay_ms=10" });
    const running = own.page.getByRole("row", { name: /answering.*scripted.*test/ });
    await running.waitFor();
    await own.click("Pause");
    await running.getByRole("button", { name: "Cancel" }).click();
    const dialog = own.page.getByRole("dialog", { name: "Cancel the request of test to scripted?" });
    await dialog.getByRole("button", { name: "Cancel", exact: true }).click();
    expect(await stream?.over).toBe("closed");
    expect(stream?.events.at(-1)).toContain("cancelled_by_operator");
    await own.sees("No request is running.");
    const ended = own.page.getByRole("row", { name: /scripted.*cancelled_by_operator/ });
    await own.page.getByRole("button", { name: "Go on: 1 new" }).waitFor();
    expect(await ended.count()).toBe(0);
    await own.click("Go on: 1 new");
    await ended.waitFor();
    expect(own.complaints).toEqual([]);
  });

  test("a key is issued with what it matches in sight, works, and ends its stream when it is revoked", async () => {
    const agent = await site.startMachine("shed");
    onTestFinished(() => agent[Symbol.asyncDispose]());
    await site.untilListed("scripted");
    const own = await signedIn();
    await own.go("/keys?issue=new");
    await own.fill("Name", "alice");
    await own.fill("Models it may call", "nothing-of-that-kind");
    await own.sees("No model that machines offer now matches.");
    await own.fill("Models it may call", "scripted");
    await own.sees(/Now: scripted/);
    await own.click("Issue");
    const key = (await own.page.getByLabel("The key", { exact: true }).innerText()).trim();
    await own.click("Done");
    await own.page
      .getByRole("dialog", { name: "Has the key been copied?" })
      .getByText("Close", { exact: true })
      .click();
    await own.page.getByRole("link", { name: "alice" }).click();
    await own.heading("alice");

    const endpoint = new Endpoint({ baseUrl: site.gateways[1]?.baseUrl ?? "", key });
    const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=100000 delay_ms=20" });
    await until(() => stream.text !== "", { what: "the first token" });
    await own.click("Revoke");
    await own.page.getByRole("dialog", { name: "Revoke alice?" }).getByRole("button", { name: "Revoke" }).click();
    await own.page.getByText("revoked", { exact: true }).first().waitFor();
    expect(await stream.over).not.toBe("");
    await own.page.getByRole("link", { name: "Requests of this key" }).click();
    await own.page
      .getByRole("row", { name: /key_invalid/ })
      .first()
      .waitFor();
    expect(own.complaints).toEqual([]);
  });

  test("a session that is ended elsewhere leads its page to the sign-in", { timeout: 40_000 }, async () => {
    const own = await signedIn();
    await own.go("/machines");
    await own.heading("Machines");
    const settings = { TRUNKLINE_OPERATIONS_URL: operationsUrl(1), TRUNKLINE_ADMIN_KEY: adminKey };
    const [key = ""] = (await site.operator.store.sessions.list()).map(holderOf).slice(-1);
    const { stdout } = await trunkline(["sessions", "end", "--key", key], settings);
    expect(stdout).toMatch(/^Ended \d+ sessions?\.$/m);
    await own.sees("Or paste a key", 25_000);
  });

  test("an admin ends another browser's session, and the page Site shows both gateways and no secret", async () => {
    await signedIn("--viewer");
    const own = await signedIn();
    await own.go("/sessions");
    const row = own.page.getByRole("row", { name: /viewer/ });
    await row.getByRole("button", { name: "End", exact: true }).first().click();
    await own.page.getByRole("dialog").getByRole("button", { name: "End", exact: true }).click();
    await row.waitFor({ state: "detached" });
    await own.go("/site");
    const gateways = own.page.getByRole("region", { name: "Gateways" });
    await gateways.getByText("answers this page").waitFor();
    expect(await gateways.locator("tbody tr").count()).toBe(2);
    await own.page.getByRole("row", { name: /TRUNKLINE_KEY_PEPPER a secret, not shown/ }).waitFor();
    expect(await own.page.innerText("body")).not.toContain(testPepper);
    const settings = { TRUNKLINE_OPERATIONS_URL: operationsUrl(), TRUNKLINE_ADMIN_KEY: adminKey };
    const { stdout } = await trunkline(["site", "--settings"], settings);
    expect(stdout.match(/^gateway /gm)).toHaveLength(2);
    expect(stdout).toMatch(/^TRUNKLINE_KEY_PEPPER +\(secret\)/m);
    expect(stdout).not.toContain(testPepper);
    expect(own.complaints).toEqual([]);
  });

  test("by keyboard alone a page, a machine and a request are found, and Escape closes the find", async () => {
    const agent = await site.startMachine("garage");
    onTestFinished(() => agent[Symbol.asyncDispose]());
    const answer = await site.endpoints[0]?.chat({ model: "nobody-has-this", says: "Hello" });
    const id = answer?.headers.get("x-request-id") ?? "";
    const own = await signedIn();
    const { keyboard } = own.page;
    const find = async (text: string): Promise<void> => {
      await keyboard.press("Control+k");
      await own.page.getByRole("combobox").waitFor();
      await keyboard.type(text);
      await own.page.getByRole("option", { name: text }).first().waitFor();
    };
    await find("garage");
    expect(await brokenRules(own.page)).toEqual([]);
    await keyboard.press("Enter");
    await own.heading("garage");
    await find("s");
    const selected = own.page.getByRole("option", { selected: true });
    const first = await selected.innerText();
    await keyboard.press("ArrowDown");
    expect(await selected.innerText()).not.toBe(first);
    await keyboard.press("ArrowUp");
    expect(await selected.innerText()).toBe(first);
    await keyboard.press("Escape");
    await own.page.getByRole("combobox").waitFor({ state: "detached" });
    await find(id);
    await keyboard.press("Enter");
    await own.sees(`trunkline requests show ${id}`);
    expect(own.complaints).toEqual([]);
  });

  test("by keyboard alone a machine is paired, a failed request is read, and a running one is cancelled", async () => {
    const agent = await site.startMachine("cellar");
    onTestFinished(() => agent[Symbol.asyncDispose]());
    await site.untilListed("scripted");
    const own = await signedIn();
    const { keyboard } = own.page;
    await own.enter("link", "Machines");
    await own.enter("button", "Pair a machine");
    await own.page.getByRole("dialog").locator("input:focus").waitFor();
    await keyboard.type("shed-3090");
    await keyboard.press("Enter");
    await own.sees(/Waiting for it/);
    await keyboard.press("Escape");
    await own.enter("button", "Close");
    await own.page.getByRole("dialog").waitFor({ state: "detached" });
    const failed = await site.endpoints[0]?.chat({ model: "nobody-had-this", says: "Hello" });
    await keyboard.press("Control+k");
    await own.page.getByRole("combobox").waitFor();
    await keyboard.type(failed?.headers.get("x-request-id") ?? "");
    await own.page.getByRole("option", { selected: true }).waitFor();
    await keyboard.press("Enter");
    await own.sees(/The request ended with/);
    const stream = await site.endpoints[0]?.stream({ model: "scripted", says: "/script tokens=3000 delay_ms=10" });
    await own.enter("link", "Requests");
    await own.page.getByRole("row", { name: /answering.*scripted/ }).waitFor();
    await own.enter("button", "Cancel");
    await own.page.getByRole("dialog").locator(":focus").waitFor();
    await own.enter("button", "Cancel");
    expect(await stream?.over).toBe("closed");
    expect(stream?.events.at(-1)).toContain("cancelled_by_operator");
    expect(own.complaints).toEqual([]);
  });

  test("a viewer sees the site and no button that changes it", async () => {
    const own = await signedIn("--viewer");
    await own.go("/machines");
    await own.heading("Machines");
    await own.page.getByRole("table").or(own.page.getByText("No machine is connected yet")).first().waitFor();
    expect(await own.page.getByRole("button", { name: "Pair a machine" }).count()).toBe(0);
  });

  test("hostile names are shown as text", async () => {
    const hostile = `<img src=x onerror="document.title='owned'">\u202e${"x".repeat(60)}`;
    const own = await signedIn();
    await site.endpoints[0]?.chat({ model: hostile, says: "Hello" });
    await own.go("/requests");
    await own.sees("<img src=x onerror");
    expect(await own.page.locator("#console img[src=x]").count()).toBe(0);
    expect(await own.page.title()).toBe("Requests · Trunkline");
    expect(own.complaints).toEqual([]);
  });

  test("the page tells that the gateway is away, and goes on when it is back", async () => {
    const own = await signedIn();
    await own.go("/machines");
    await own.heading("Machines");
    const gateway = site.gateways[0];
    await gateway?.freeze();
    await own.sees(/has not answered for/, 15_000);
    await gateway?.thaw();
    await own.page.getByText(/has not answered for/).waitFor({ state: "detached", timeout: 15_000 });
  });
});
