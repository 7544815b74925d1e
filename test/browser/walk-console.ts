/**
 * Walks each page and dialog of the console, empty, as usual, full and with the gateway away, light at 1440 px and dark at
 * 360 px. It prints what was wrong and how soon each page was there as a whole, and ends with 1 if anything was wrong.
 *
 * usage: npm run walk:console -- [--pictures <folder>] [--only empty,usual,full,away] [--light | --dark]
 */
import { parseArgs } from "node:util";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { findServers } from "../harness/find-servers.ts";
import { ConsoleWalk, type Look, stages } from "./console-walk.ts";
import { SomebodysSite } from "./somebodys-site.ts";

const { values } = parseArgs({
  options: {
    pictures: { type: "string" },
    only: { type: "string", default: stages.join() },
    light: { type: "boolean" },
    dark: { type: "boolean" },
  },
});
const only = values.only.split(",");
const one: Look | undefined = values.light ? "light" : values.dark ? "dark" : undefined;
const found = await findBrowser();
if (found.path === undefined) throw new Error(found.reason);
await using parts = new AsyncDisposableStack();
const site = parts.use(await SomebodysSite.start(await findServers()));
const browser = parts.adopt(await launchBrowser(found.path), (each) => each.close());
const walk = parts.use(new ConsoleWalk(browser, site));
for (const stage of stages) {
  if (stage === "usual") await site.moveIn();
  if (stage === "full" && only.includes(stage)) await site.growLarge();
  if (!only.includes(stage)) continue;
  const begun = performance.now();
  const options = { ...(one && { looks: [one] }), pictures: values.pictures };
  const pages = await walk.walk(stage, options);
  console.log(`${stage}: ${pages.length} pages in ${Math.round((performance.now() - begun) / 1_000)} s`);
}
for (const [page, ms] of walk.usableMs) console.log(`${String(Math.round(ms)).padStart(6)} ms  ${page}`);
for (const problem of walk.problems) console.log(problem);
process.exitCode = walk.problems.length === 0 ? 0 : 1;
