import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";
import { ConsolePage, signInLink } from "./console-page.ts";

const found = await findBrowser();

describe.skipIf(found.path === undefined)("a machine with running requests", () => {
  test("a machine that is drained on its page says how many requests are left as they end, and when it can be switched off", async () => {
    const ollama = await FakeOllama.start();
    onTestFinished(() => ollama.stop());
    const ends: (() => void)[] = [];
    ollama.onChat = (chat) => {
      chat.say("Hello");
      ends.push(() => chat.done());
    };
    const runtime = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url };
    const up = await startUp({ ...runtime, TRUNKLINE_MACHINE: "attic", TRUNKLINE_SLOTS: "2" });
    onTestFinished(() => up[Symbol.asyncDispose]());
    const answers = [1, 2].map(() => up.endpoint.chat({ model: "llama3.2", says: "Hello", stream: true }));
    await until(() => ends.length === 2 || undefined, { what: "both requests to run" });
    const browser = await launchBrowser(found.path ?? "");
    onTestFinished(() => browser.close());
    const own = await ConsolePage.open(browser, up.operationsUrl);
    await own.go(await signInLink(up.operationsUrl, readFileSync(join(up.stateDir, "admin-key"), "utf8").trim()));
    await own.heading("Overview");
    await own.go("/machines/attic");
    await own.click("Drain");
    await own.page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
    await own.sees("Draining: 2 requests left");
    ends[0]?.();
    await own.sees("Draining: 1 request left");
    ends[1]?.();
    await own.sees("Empty: can be switched off");
    for (const answer of answers) expect(await (await answer).text()).toContain("[DONE]");
    expect(own.complaints).toEqual([]);
  });
});
