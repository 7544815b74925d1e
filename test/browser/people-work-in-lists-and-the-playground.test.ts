import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";
import { ConsolePage, signInLink } from "./console-page.ts";

const found = await findBrowser();

describe.skipIf(found.path === undefined)("lists and the playground of the console", () => {
  let browser: Browser;
  let ollama: FakeOllama;
  let up: UpProcess;
  beforeAll(async () => {
    ollama = await FakeOllama.start({ models: [{ name: "llama3.2:latest" }] });
    const runtime = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url };
    [browser, up] = await Promise.all([launchBrowser(found.path ?? ""), startUp(runtime)]);
    await up.endpoint.untilListed("llama3.2");
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    await up?.[Symbol.asyncDispose]();
    await ollama?.[Symbol.asyncDispose]();
  });

  async function signedIn(): Promise<ConsolePage> {
    const own = await ConsolePage.open(browser, up.operationsUrl);
    onTestFinished(() => own[Symbol.asyncDispose]());
    await own.go(await signInLink(up.operationsUrl, readFileSync(join(up.stateDir, "admin-key"), "utf8").trim()));
    await own.heading("Overview");
    return own;
  }

  test("the playground keeps the end of a growing answer in view unless one scrolls up, stops it, and copies its code as text", async () => {
    const own = await signedIn();
    const { page } = own;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const code = "<img src=x onerror=\"document.title='owned'\">";
    ollama.onChat = (chat) => {
      chat.say(`Write this:\n\`\`\`html\n${code}\n\`\`\`\n`);
      for (let line = 0; line < 60; line += 1) chat.say(`Line ${line}.\n`);
    };
    await own.go("/playground?model=llama3.2");
    await own.fill("Message", "Go on and on.");
    await page.getByLabel("Message").press("Enter");
    const last = page.getByText(/Line 59/);
    const belowView = () => page.evaluate<number>("document.documentElement.scrollHeight - innerHeight - scrollY");
    await last.waitFor();
    await until(async () => (await belowView()) < 2, { what: "the end to be in view" });
    await page.mouse.move(500, 300);
    await page.mouse.wheel(0, -600);
    await until(async () => (await belowView()) > 500, { what: "the page to be scrolled" });
    await own.click("Stop");
    await page.getByText("Stopped.").waitFor();
    expect(await belowView()).toBeGreaterThan(500);
    const sends = await page.getByRole("button", { name: "Send" }).boundingBox();
    expect(sends?.y).toBeLessThan(900);
    await own.click("Copy: html");
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(code);
    await own.click("Copy as code");
    await page.getByLabel("curl", { exact: true }).getByText("$TRUNKLINE_KEY").waitFor();
    expect(await page.title()).toBe("Playground · Trunkline");
    expect(own.complaints).toEqual([]);
  });

  test("a long list is found in by parts of its names, has pages, and folds on a phone with its outcome and no scrolling aside", async () => {
    const own = await signedIn();
    const { page } = own;
    const scopes = ["hf.co/unsloth/Qwen3-Coder-30B-A3B-Instruct-1M-GGUF:UD-Q4_K_XL"];
    for (let place = 1; place <= 60; place += 1) {
      const sent = { data: { name: `client-${place}`, ttl: "1d", scopes }, headers: { "x-trunkline-console": "1" } };
      expect((await page.request.post(`${up.operationsUrl}/admin/v1/keys`, sent)).status()).toBe(201);
    }
    await own.go("/keys");
    await page.setViewportSize({ width: 360, height: 760 });
    await page.getByText(/^1–50 of \d+$/).waitFor();
    await page.getByRole("button", { name: "Next" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText(/^51–\d+ of \d+$/).waitFor();
    await own.fill("Find", "CLIENT-5 q4_k");
    const rows = page.locator("tbody tr");
    await page.getByText(/^11 of \d+$/).waitFor();
    expect(page.url()).not.toContain("page=");
    expect(await rows.count()).toBe(11);
    await own.click("name");
    expect(await rows.first().innerText()).toMatch(/^client-5\n/);
    await rows.first().getByText("valid").waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await own.fill("Find", "nothing like this");
    await own.sees("Nothing here contains");
    expect(own.complaints).toEqual([]);
  });
});
