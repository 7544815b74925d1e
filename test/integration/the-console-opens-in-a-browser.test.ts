import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ConsolePage, signInLink } from "../browser/console-page.ts";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { startUp } from "../harness/start-trunkline.ts";

/** The quick part of `npm run test:browser`. */
const found = await findBrowser({ mayInstall: false });
if (found.path === undefined) console.log(`Skipping the console in a browser: ${found.reason}.`);

test.skipIf(found.path === undefined)("a sign-in link opens the console on a site in one process", async () => {
  await using up = await startUp({ TRUNKLINE_MACHINE: "attic" });
  const browser = await launchBrowser(found.path ?? "");
  try {
    await using own = await ConsolePage.open(browser, up.operationsUrl);
    await own.go(await signInLink(up.operationsUrl, readFileSync(join(up.stateDir, "admin-key"), "utf8").trim()));
    await own.heading("Overview");
    await own.go("/machines/attic");
    await own.sees("scripted:vision");
    expect(own.complaints).toEqual([]);
  } finally {
    await browser.close();
  }
});
