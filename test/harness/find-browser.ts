import { type Browser, chromium, type Page } from "playwright-core";
import { aptInstall, findBinary } from "./find-binary.ts";

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const variable = "TRUNKLINE_TEST_CHROMIUM";

/** A browser for tests, or why there is none. */
export type FoundBrowser = { readonly path: string } | { readonly path: undefined; readonly reason: string };

/**
 * Finds Chromium: the one that is named, one that is installed, or Debian's, which root's Debian installs now. `npm test` is
 * for people and installs none.
 */
export async function findBrowser({ mayInstall = true } = {}): Promise<FoundBrowser> {
  const given = process.env[variable];
  if (given) return { path: given };
  const installed = await findFirst();
  if (installed !== undefined) return { path: installed };
  const remedy = `install it (sudo apt-get install -y chromium), or name one in ${variable}`;
  if (!mayInstall || process.getuid?.() !== 0 || (await findBinary("apt-get")) === undefined) {
    return { path: undefined, reason: `there is no Chromium: ${remedy}` };
  }
  console.log(
    "Installing chromium by apt-get, once, since tests of the console need a real browser and none was found.",
  );
  try {
    await aptInstall(["chromium"]);
  } catch (error) {
    return { path: undefined, reason: `apt-get could not install Chromium (${String(error)}): ${remedy}` };
  }
  const path = await findFirst();
  return path === undefined ? { path, reason: `there is still no Chromium: ${remedy}` } : { path };
}

async function findFirst(): Promise<string | undefined> {
  for (const name of names) {
    const path = await findBinary(name);
    if (path !== undefined) return path;
  }
  return undefined;
}

/** Starts a browser. Chromium's sandbox works for every user but root. */
export function launchBrowser(path: string): Promise<Browser> {
  return chromium.launch({ executablePath: path, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
}

/** Collects the complaints of a page: errors on its console, exceptions, and breaches of its content security policy. */
export function watchComplaints(page: Page): string[] {
  const complaints: string[] = [];
  page.on("console", (message) => {
    // A request that is refused on purpose is named on the console too.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
  return complaints;
}
