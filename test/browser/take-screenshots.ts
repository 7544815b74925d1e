/**
 * Takes pictures of pages of the console, in light and dark, from a site that looks like somebody's. The two of the README are
 * written to `infra`, all others to `screenshots`.
 *
 * usage: npm run screenshots
 */
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { findServers } from "../harness/find-servers.ts";
import { SomebodysSite } from "./somebodys-site.ts";

const root = join(import.meta.dirname, "../..");
const folder = join(root, "screenshots");
/** Long enough for each machine to have ended a request. */
const busyMs = 20_000;

const pages: Readonly<Record<string, string>> = {
  overview: "",
  machines: "/machines",
  machine: "/machines/studio-4090",
  models: "/models",
  model: `/models/of/${encodeURIComponent("qwen3-coder:30b")}`,
  keys: "/keys",
  requests: "/requests",
  usage: "/usage",
  playground: `/playground?model=${encodeURIComponent("qwen3-coder:30b")}`,
};
/** The pictures of the README, and the theme of each. */
const shownInReadme: Readonly<Record<string, string>> = {
  "overview-light": "console-overview.png",
  "requests-dark": "console-requests.png",
};

const found = await findBrowser();
if (found.path === undefined) throw new Error(found.reason);
await using parts = new AsyncDisposableStack();
const site = parts.use(await SomebodysSite.start(await findServers()));
await site.moveIn();
await sleep(busyMs);
mkdirSync(folder, { recursive: true });
const browser = parts.adopt(await launchBrowser(found.path), (each) => each.close());
for (const colorScheme of ["light", "dark"] as const) {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 }, colorScheme });
  const page = await context.newPage();
  await page.goto(`${site.gateway.operationsUrl}/console`);
  await page.getByLabel("Admin or viewer key").fill(site.adminKey);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  for (const [name, place] of Object.entries(pages)) {
    await page.goto(`${site.gateway.operationsUrl}/console${place}`);
    await page.locator("h1").waitFor();
    if (name === "playground") {
      await page.getByLabel("Message").fill("Write a function in Python that finds the median of a list.");
      await page.getByRole("button", { name: "Send" }).click();
      await page.getByText(/first token after/).waitFor({ timeout: 20_000 });
    }
    await sleep(1_500);
    const file = join(folder, `${name}-${colorScheme}.png`);
    await page.screenshot({ path: file });
    const inReadme = shownInReadme[`${name}-${colorScheme}`];
    if (inReadme !== undefined) copyFileSync(file, join(root, "infra", inReadme));
    console.log(file.slice(root.length + 1));
  }
  await context.close();
}
