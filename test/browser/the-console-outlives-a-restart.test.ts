import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { freePort } from "../harness/free-port.ts";
import { Site } from "../harness/start-site.ts";
import { ConsolePage, signInLink } from "./console-page.ts";

const found = await findBrowser();

describe.skipIf(found.path === undefined)("an open page of the console", () => {
  let browser: Browser;
  let site: Site;
  beforeAll(async () => {
    const operationsPort = String(await freePort());
    [browser, site] = await Promise.all([
      launchBrowser(found.path ?? ""),
      Site.start({ TRUNKLINE_OPERATIONS_PORT: operationsPort, TRUNKLINE_SCRIPTED_MODELS: "scripted" }),
    ]);
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    await site?.[Symbol.asyncDispose]();
  });

  test(
    "an open page of the console goes on after a restart of its gateway, with the same session and new requests",
    { timeout: 60_000 },
    async () => {
      const { operationsUrl } = site.up;
      await using own = await ConsolePage.open(browser, operationsUrl);
      await own.go(await signInLink(operationsUrl, readFileSync(join(site.stateDir, "admin-key"), "utf8").trim()));
      await own.heading("Overview");
      await own.go("/requests?model=scripted");
      await own.sees("No request matches.");
      await site.up[Symbol.asyncDispose]();
      await own.page.getByRole("link", { name: "Usage", exact: true }).click();
      await own.sees("The gateway does not answer. It may be restarting.");
      await site.restart();
      await own.page.getByText("The gateway does not answer. It may be restarting.").waitFor({ state: "detached" });
      await own.page.getByRole("link", { name: "Requests", exact: true }).click();
      await site.endpoint.answer({ model: "scripted", says: "/script tokens=2" });
      const row = own.page.getByRole("row", { name: /scripted.*ok/ });
      await row.waitFor({ timeout: 20_000 });
      expect(await own.page.getByText(/has not answered for/).count()).toBe(0);
      expect(own.complaints).toEqual([]);
    },
  );
});
