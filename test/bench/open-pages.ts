/**
 * Measures what open pages of the console cost the gateway: the share of a core that it takes with no page, one and ten of
 * them, on a site of six machines that is idle, and with three clients whose answers stream. Each page is another one of
 * the side, in Chromium.
 *
 * usage: node test/bench/open-pages.ts [--seconds 30] [--rounds 3]
 */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { SomebodysSite } from "../browser/somebodys-site.ts";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { findServers } from "../harness/find-servers.ts";
import { spreadOf } from "./over-rounds.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "30" }, rounds: { type: "string", default: "3" } },
});
const seconds = Number(values.seconds);
const found = await findBrowser();
if (found.path === undefined) throw new Error(found.reason);
await using parts = new AsyncDisposableStack();
const site = parts.use(await SomebodysSite.start(await findServers()));
await site.moveIn({ traffic: false });
const browser = parts.adopt(await launchBrowser(found.path), (each) => each.close());
const context = await browser.newContext();
const first = await context.newPage();
const { operationsUrl, processId } = site.gateway;
await first.goto(`${operationsUrl}/console`);
await first.getByLabel("Admin or viewer key").fill(site.adminKey);
await first.getByRole("button", { name: "Sign in" }).click();
const links = first.locator("nav.side li a");
await links.first().waitFor();
const places = await links.evaluateAll((all) => all.map((each) => String(each.getAttribute("href"))));
await first.close();

for (const state of ["idle", "in use"]) {
  if (state === "in use") site.startTraffic();
  const shares = new Map<number, number[]>([0, 1, 10].map((pages) => [pages, []]));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [pages, measured] of shares) measured.push(await shareWith(places.slice(0, pages)));
  }
  for (const [pages, measured] of shares) {
    const { median } = spreadOf(measured);
    const each = measured.map((share) => (share * 100).toFixed(2)).join(", ");
    console.log(`${state}, ${pages} pages: ${(median * 100).toFixed(2)} % of a core (${each})`);
  }
}

/** Returns the share of a core that the gateway takes while these pages are open. */
async function shareWith(open: readonly string[]): Promise<number> {
  const pages = [];
  for (const place of open) {
    const page = await context.newPage();
    await page.goto(operationsUrl + place);
    await page.locator("main h1").waitFor();
    pages.push(page);
  }
  await sleep(2_000);
  const before = busyNs();
  await sleep(seconds * 1_000);
  const share = (busyNs() - before) / (seconds * 1e9);
  for (const page of pages) await page.close();
  return share;
}

/** The time that all threads of the gateway were on a core. */
function busyNs(): number {
  const tasks = `/proc/${processId}/task`;
  const times = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]);
  return times.reduce((sum, ns) => sum + Number(ns), 0);
}
