import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Browser } from "playwright-core";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { ConsoleWalk } from "./console-walk.ts";
import { SomebodysSite } from "./somebodys-site.ts";

const found = await findBrowser();
const aboutMs = 170_000;

describe.skipIf(found.path === undefined || lentOnly("nats"))("the console", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser(found.path ?? "");
    return () => browser.close();
  });

  test(
    "no page and no dialog of the console breaks a rule of accessibility, scrolls sideways or complains, empty, in use, full or without its gateway",
    { timeout: 2 * aboutMs },
    async () => {
      const site = await SomebodysSite.start();
      onTestFinished(() => site[Symbol.asyncDispose]());
      const walk = new ConsoleWalk(browser, site);
      await walk.walk("empty", { looks: ["dark"] });
      await site.moveIn();
      const pages = await walk.walk("usual");
      await site.growLarge({ requests: 20_000 });
      await walk.walk("full", { looks: ["dark"] });
      await walk.walk("away", { looks: ["dark"] });
      expect(walk.problems).toEqual([]);
      // The walk finds pages by their links; a page of each kind is among them.
      expect(pages.length).toBeGreaterThan(12);
    },
  );
});
