import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { ConsolePage, signInLink } from "./console-page.ts";

const found = await findBrowser();
const mb = 1_000_000;

describe.skipIf(found.path === undefined)("a machine that lets models be placed", () => {
  test("a machine that lets models be placed keeps a model once its page says so, which shows it in memory, no longer once that is taken back, and again once it is pinned on its machine's page", async () => {
    const model = { name: "llama3:8b", sizeBytes: 100 * mb, memoryBytes: 120 * mb };
    const ollama = await FakeOllama.start({ models: [model] });
    onTestFinished(() => ollama.stop());
    const runtime = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url };
    const up = await startUp({ ...runtime, TRUNKLINE_MACHINE: "attic", TRUNKLINE_MANAGE: "place" });
    onTestFinished(() => up[Symbol.asyncDispose]());
    const browser = await launchBrowser(found.path ?? "");
    onTestFinished(() => browser.close());
    const own = await ConsolePage.open(browser, up.operationsUrl);
    await own.go(await signInLink(up.operationsUrl, readFileSync(join(up.stateDir, "admin-key"), "utf8").trim()));
    await own.heading("Overview");
    await own.go("/models/of/llama3%3A8b");
    await own.click("Keep it in memory");
    await own.page.getByText("its machine holds it").waitFor();
    await own.page.getByText("yes, 120 MB, kept").waitFor();
    await own.click("Stop keeping");
    await own.page.getByRole("dialog").getByRole("button", { name: "Stop keeping" }).click();
    await own.page.getByText("yes, 120 MB", { exact: true }).waitFor();
    await own.page.getByRole("button", { name: "Keep it in memory" }).waitFor();
    await own.go("/machines/attic");
    await own.click("Pin llama3:8b on attic");
    await own.page.getByText("yes, 120 MB, kept").waitFor();
    await own.go("/models/kept");
    await own.page.getByRole("row", { name: /llama3:8b.*attic.*its machine holds it/ }).waitFor();
    expect(own.complaints).toEqual([]);
  });
});
