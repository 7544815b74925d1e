import { describe, expect, onTestFinished, test } from "vitest";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { until } from "../harness/until.ts";
import { ConsolePage, signInLink } from "./console-page.ts";

const found = await findBrowser();

describe.skipIf(found.path === undefined)("the content of a captured request", () => {
  test("the content of a captured request is shown as text to an admin who asks for it, and to no viewer, and removed there", async () => {
    await using gateway = await startGatewayInProcess({ env: { TRUNKLINE_CAPTURE: "on" } });
    const { endpoint } = await gateway.issue({ capture: "7d" });
    const messages = [
      { role: "system", content: "<img src=x onerror=alert(1)> <b>careful</b>" },
      { role: "user", content: "script tokens=2 nonce=delivered" },
    ];
    const answer = await endpoint.post("/chat/completions", { model: "scripted", messages });
    const place = `/requests/${answer.headers.get("x-request-id")}`;
    await until(async () => (await gateway.store.captures.holders()).length > 0, { what: "the content to be kept" });
    const browser = await launchBrowser(found.path ?? "");
    onTestFinished(() => browser.close());
    const [own, viewer] = await Promise.all([1, 2].map(() => ConsolePage.open(browser, gateway.operationsUrl)));
    if (own === undefined || viewer === undefined) throw new Error("there are two pages");
    const { key } = (await gateway.issue({ kind: "admin" })).endpoint;
    await viewer.go(await signInLink(gateway.operationsUrl, key, "--viewer"));
    await viewer.heading("Overview");
    await viewer.go(place);
    await viewer.sees("What happened");
    expect(await viewer.page.getByText("Content").count()).toBe(0);

    await own.go(await signInLink(gateway.operationsUrl, key));
    await own.heading("Overview");
    await own.go(place);
    await own.sees("The audit trail names each reader.");
    expect(await own.page.getByText("careful").count()).toBe(0);
    await own.click("Show the content");
    await own.sees("<img src=x onerror=alert(1)> <b>careful</b>");
    await own.sees("delivered-0 delivered-1");
    expect(await own.page.locator("pre img, pre b").count()).toBe(0);
    await own.click("Remove the content");
    await own.page.getByRole("dialog").getByRole("button", { name: "Remove the content" }).click();
    await own.page.getByText("careful").waitFor({ state: "detached" });
    await own.page.getByRole("heading", { name: "Content" }).waitFor({ state: "detached" });
    expect([...own.complaints, ...viewer.complaints]).toEqual([]);
  });
});
