import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { Endpoint } from "../harness/endpoint.ts";
import { PullingOllama } from "../harness/pulling-ollama.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { ConsolePage, signInLink } from "./console-page.ts";

const found = await findBrowser();
const gb = 1_000_000_000;

describe.skipIf(found.path === undefined)("the console of a site in one process", () => {
  let browser: Browser;
  let ollama: PullingOllama;
  let up: UpProcess;
  beforeAll(async () => {
    ollama = await PullingOllama.start([{ name: "llama3.2:latest" }]);
    const runtime = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url };
    [browser, up] = await Promise.all([
      launchBrowser(found.path ?? ""),
      startUp({ ...runtime, TRUNKLINE_MACHINE: "attic", TRUNKLINE_MANAGE: "pull,remove" }),
    ]);
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

  test("a model is pulled while its progress is shown, and is listed", async () => {
    const own = await signedIn();
    await own.go("/models?pull=new");
    await own.fill("Model", "qwen3:8b");
    await own.page.getByRole("dialog").getByRole("button", { name: "Pull" }).click();
    const pull = await until(() => ollama.pulls.find(({ model }) => model === "qwen3:8b"), {
      what: "the pull to begin",
    });
    pull.say({ status: "pulling manifest" });
    await own.sees("pulling manifest");
    const layer = { status: "pulling a3de86cd1c13", digest: "sha256:a3de86cd1c13", total: 5 * gb };
    pull.say(layer);
    pull.say({ ...layer, completed: 2 * gb });
    await own.sees(/40 % of 5\.0 GB/);
    ollama.fake.models = [...ollama.fake.models, { name: "qwen3:8b", sizeBytes: 5 * gb }];
    pull.say({ ...layer, completed: 5 * gb });
    pull.say({ status: "success" });
    pull.end();
    await own.sees(/qwen3:8b is on attic/);
    await own.go("/models");
    await own.page.getByRole("row", { name: /qwen3:8b/ }).waitFor();
    expect(own.complaints).toEqual([]);
  });

  test("a pull goes on when its window is closed and the page reloaded, is shown on each page that knows it, and is stopped from any", async () => {
    const own = await signedIn();
    await own.go("/models?pull=new");
    await own.fill("Model", "phi4:14b");
    await own.sees(/Size unknown/);
    await own.page.getByRole("dialog").getByRole("button", { name: "Pull" }).click();
    const pull = await until(() => ollama.pulls.find(({ model }) => model === "phi4:14b"), {
      what: "the pull to begin",
    });
    const layer = { status: "pulling fd7b6731c33c", digest: "sha256:fd7b6731c33c", total: 9 * gb };
    pull.say(layer);
    pull.say({ ...layer, completed: 3 * gb });
    await own.click("Close");
    for (const place of ["", "/models", "/models/of/phi4%3A14b", "/machines/attic"]) {
      await own.go(place);
      await own.sees(/33 % of 9\.0 GB/);
    }
    await own.page.getByRole("button", { name: "Stop the pull of phi4:14b on attic" }).click();
    await own.sees("The pull of 'phi4:14b' was stopped.");
    await until(() => pull.closedEarly || undefined, { what: "the model server's download to end" });
    expect(own.complaints).toEqual([]);
  });

  test("a chat in the playground streams, and tells its machine and its figures", async () => {
    ollama.fake.onChat = (chat) => {
      for (const word of ["Hello ", "from ", "Ollama."]) chat.say(word);
      chat.done();
    };
    const own = await signedIn();
    await own.go("/playground?model=llama3.2");
    await own.fill("Message", "Who are you?");
    await own.click("Send");
    await own.sees("Hello from Ollama.");
    await own.page.getByText(/first token after/).waitFor();
    await own.page.getByRole("link", { name: "attic" }).waitFor();
    await own.page.getByRole("link", { name: "What happened" }).click();
    await own.heading("llama3.2");
    await own.sees("/console/v1/chat/completions");
    expect(own.complaints).toEqual([]);
  });

  test("the figures of usage are those of the command line", async () => {
    await up.endpoint.answer({ model: "llama3.2", says: "Hello" });
    const settings = { TRUNKLINE_STATE_DIR: up.stateDir };
    interface Sum {
      readonly requests: number;
      readonly completion_tokens: number;
    }
    // The sums of machines are booked within about a second.
    const usage = async () => {
      const { stdout } = await trunkline(["usage", "--by", "machine", "--days", "30", "--json"], settings);
      const { total: all, usage: machines } = JSON.parse(stdout) as { readonly total: Sum; readonly usage: Sum[] };
      return all.requests > 0 && machines[0]?.requests === all.requests ? all : undefined;
    };
    const total = await until(usage, { what: "usage to be booked" });
    const own = await signedIn();
    await own.go("/usage");
    const sums = own.page.getByRole("row", { name: /^all/ });
    await sums.waitFor();
    const cells = await sums.getByRole("cell").allInnerTexts();
    expect([cells[1], cells[4]]).toEqual([String(total.requests), String(total.completion_tokens)]);
    await own.page.getByLabel("By", { exact: true }).selectOption("machine");
    const machine = own.page.getByRole("row", { name: /^attic/ });
    await machine.waitFor();
    const ofMachine = await machine.getByRole("cell").allInnerTexts();
    expect([ofMachine[1], ofMachine[4]]).toEqual([String(total.requests), String(total.completion_tokens)]);
    expect(own.complaints).toEqual([]);
  });

  test("a chart of the last hour is read by the arrow keys and as a table, and tells machines apart", async () => {
    await up.endpoint.stream({ model: "llama3.2", says: "Hello" }).then(({ over }) => over);
    const own = await signedIn();
    await own.go("/usage");
    await own.page.getByLabel("Range").selectOption("1 h");
    await own.page.getByLabel("Tell apart").selectOption("machines");
    expect(new URL(own.page.url()).searchParams.toString()).toBe("range=1+h&cut=machine");
    const figure = own.page.getByRole("figure").first();
    const chart = figure.getByRole("slider", { name: "Requests" });
    await chart.focus();
    await own.page.keyboard.press("End");
    const words = async () => (await chart.getAttribute("aria-valuetext")) ?? "";
    const valueOf = (text: string) => Number(/attic (\d+)/.exec(text)?.[1]);
    const latest = await words();
    let sum = 0;
    for (let step = 0; step < 61; step += 1, await own.page.keyboard.press("ArrowLeft"))
      sum += valueOf(await words()) || 0;
    expect(await words()).not.toBe(latest);
    await figure.locator(".plot-tip").getByText("attic").waitFor();
    await figure.locator("figcaption").getByText(`attic ${sum}`).waitFor();
    await figure.getByText("As a table").click();
    await figure.getByRole("columnheader", { name: "attic" }).waitFor();
    await own.go("/usage?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z");
    await own.sees("No request ended in this range.");
    expect(own.complaints).toEqual([]);
  });

  test("a route is made for a name that a client asked for in vain, leads to its model, and is removed", async () => {
    const own = await signedIn();
    expect((await up.endpoint.chat({ model: "gpt-4o", says: "Hello" })).status).toBe(404);
    const missing = own.page.getByRole("row", { name: /gpt-4o/ });
    await until(
      async () => {
        await own.go("/models/missing");
        await own.page
          .getByText(/Missing|Every name/)
          .last()
          .waitFor();
        return (await missing.count()) > 0 || undefined;
      },
      { what: "the request to be booked" },
    );
    await missing.getByRole("link", { name: "Make a route" }).click();
    await own.page.getByRole("dialog").getByLabel("Model", { exact: true }).fill("llama3.2");
    await own.click("Save");
    const row = own.page.getByRole("row", { name: /gpt-4o/ });
    await row.waitFor();
    // A route is live within a second.
    await up.endpoint.untilListed("gpt-4o");
    expect(await up.endpoint.answer({ model: "gpt-4o", says: "Hello" })).toBe("Hello from Ollama.");
    await row.getByRole("link", { name: "Which machine answers" }).click();
    await own.sees(/leads to/);
    await own.page.goBack();
    await row.getByRole("button", { name: "Remove" }).click();
    await own.page.getByRole("dialog", { name: "Remove gpt-4o?" }).getByRole("button", { name: "Remove" }).click();
    await row.waitFor({ state: "detached" });
    await own.go("/trail");
    await own.page.getByRole("row", { name: /removed the route.*gpt-4o/ }).waitFor();
    expect(own.complaints).toEqual([]);
  });

  test("a key is issued with every term on its page, a wrong term is told at its field, and a change leaves the terms that the form does not touch", async () => {
    const own = await signedIn();
    await own.go("/keys?issue=new");
    await own.fill("Name", "app");
    await own.fill("Requests a minute", "2M");
    await own.fill("Budget, in tokens", "1k");
    await own.click("Issue");
    const wrong = own.page.getByLabel("Requests a minute").and(own.page.locator(":focus"));
    await wrong.waitFor();
    expect(await wrong.getAttribute("aria-invalid")).toBe("true");
    await own.sees("Must be at most 1000000.");
    await own.fill("Requests a minute", "60");
    await own.page.getByLabel("External machines").check();
    await own.page.getByLabel("Answers go on elsewhere").uncheck();
    await own.page.getByLabel("Stored responses").check();
    await own.click("Issue");
    await own.sees("The key of app");
    await own.go("/keys");
    await own.page.getByRole("link", { name: "app" }).click();
    await own.heading("app");
    const shown = async () => {
      const { stdout } = await trunkline(["keys", "list", "--json"], { TRUNKLINE_STATE_DIR: up.stateDir });
      return (JSON.parse(stdout) as { name: string; rpm: number | null }[]).find(({ name }) => name === "app");
    };
    const marks = { external: true, continues: false, store_responses: true };
    expect(await shown()).toMatchObject({ rpm: 60, budget: { tokens: 1_000, per: "month" }, ...marks });
    await own.click("Change terms");
    await own.fill("Requests a minute", "");
    await own.click("Save");
    await until(async () => (await shown())?.rpm === null, { what: "the limit to be gone" });
    expect(await shown()).toMatchObject({ tpm: null, budget: { tokens: 1_000, per: "month" }, ...marks });
    await own.sees("no: its answers end with their machine");
    expect(own.complaints).toEqual([]);
  });

  test("a team is made with a budget and a member's address, a key of it fills the team's bar, and goes with the team, by keyboard alone", async () => {
    ollama.fake.onChat = (chat) => {
      chat.say("Hello from Ollama.");
      chat.done();
    };
    const own = await signedIn();
    const { page } = own;
    const type = async (label: string, text: string): Promise<void> => {
      await own.reach(page.getByRole("dialog").getByLabel(label, { exact: true }));
      await page.keyboard.type(text);
    };
    await own.enter("link", "Teams");
    await own.enter("button", "Create a team");
    await type("Name", "research");
    await type("Budget, in tokens", "1k");
    await page.keyboard.press("Enter");
    await own.heading("research");
    await own.enter("button", "Add a member");
    await type("Person or e-mail address", "anna@example.org");
    await page.keyboard.press("Enter");
    await page.getByRole("row", { name: /anna@example\.org.*has not signed in/ }).waitFor();
    await own.enter("link", "Issue a key");
    await own.reach(page.getByLabel("Team", { exact: true }));
    await type("Name", "notebook");
    await page.keyboard.press("Enter");
    await own.sees("The key of notebook");
    const key = await page.getByLabel("The key", { exact: true }).innerText();
    await page.keyboard.press("Escape");
    await own.enter("button", "Close");
    const client = new Endpoint({ baseUrl: up.endpoint.baseUrl, key });
    await client.answer({ model: "llama3.2", says: "Hello" });
    await own.enter("link", "Teams");
    const bar = page.getByRole("row", { name: /research/ }).getByRole("meter", { name: /^[1-9]\d* of 1,000 a month/ });
    const isUsed = async () => {
      await page.reload();
      await page.getByRole("meter").waitFor();
      return (await bar.count()) > 0 || undefined;
    };
    await until(isUsed, { what: "usage to be booked", timeoutMs: 20_000 });
    await own.enter("link", "research");
    await page.getByRole("row", { name: /notebook.*valid/ }).waitFor();
    await own.enter("button", "Remove");
    await page
      .getByRole("dialog", { name: "Remove research?" })
      .getByText(/Its keys that work are revoked: 1/)
      .waitFor();
    await own.enter("button", "Remove");
    await own.sees("No team yet.");
    expect((await client.chat({ model: "llama3.2", says: "Hello" })).status).toBe(401);
    expect(own.complaints).toEqual([]);
  });

  test("keys are issued, copied and revoked two at once by keyboard alone, a window with a secret asks before it closes, and a failure at one key stops no other", async () => {
    const own = await signedIn();
    await own.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const press = (key: string): Promise<void> => own.page.keyboard.press(key);
    const focused = (name: string): Promise<void> =>
      own.page.getByRole("button", { name, exact: true }).and(own.page.locator(":focus")).waitFor();
    await own.go("/keys");
    for (const name of ["bob", "carol"]) {
      await own.page.getByRole("button", { name: "Issue a key" }).focus();
      await press("Enter");
      await own.page.getByRole("dialog").locator("select:focus").waitFor();
      await press("Tab");
      await own.page.keyboard.type(name);
      await press("Enter");
      await focused("Copy: The key");
      await press("Enter");
      await own.sees("Copied");
      expect(await own.page.evaluate("navigator.clipboard.readText()")).toMatch(/^trunkline_/);
      await press("Escape");
      await focused("Cancel");
      await press("Escape");
      await focused("Copy: The key");
      await press("Escape");
      await focused("Cancel");
      await press("Tab");
      await focused("Close");
      await press("Enter");
      await focused("Issue a key");
      await own.page.getByRole("checkbox", { name: `Choose ${name}` }).waitFor();
    }
    for (const name of ["bob", "carol"]) {
      await own.page.getByRole("checkbox", { name: `Choose ${name}` }).focus();
      await press("Space");
    }
    await own.sees("2 keys chosen");
    await own.page.getByRole("button", { name: "Revoke", exact: true }).focus();
    await press("Enter");
    await focused("Cancel");
    const asked = own.page.getByRole("dialog", { name: "Revoke 2 keys?" });
    expect(await asked.getByRole("listitem").allInnerTexts()).toEqual([
      expect.stringMatching(/^bob/),
      expect.stringMatching(/^carol/),
    ]);
    expect(own.complaints).toEqual([]);
    await own.page.route("**/revoke", (route) => route.abort(), { times: 1 });
    await press("Tab");
    await focused("Revoke");
    await press("Enter");
    const results = own.page.getByRole("dialog", { name: "1 of 2 keys revoked" }).getByRole("listitem");
    await results.first().waitFor();
    expect(await results.allInnerTexts()).toEqual([
      expect.stringMatching(/^failed bob The gateway does not answer/),
      expect.stringMatching(/^revoked carol/),
    ]);
    await focused("Done");
    await press("Enter");
    await own.page.getByRole("link", { name: "carol" }).waitFor({ state: "detached" });
    await own.page.getByRole("link", { name: "bob" }).waitFor();
  });
});
