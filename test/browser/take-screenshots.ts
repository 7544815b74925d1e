/**
 * Takes pictures of eight pages of the console, in light and dark, from a demonstration site that is busy for a minute:
 * three machines of which one dies, two keys, a route, and requests that come and go. The two of the README are written
 * to `infra`, all others to `screenshots`.
 *
 * usage: npm run screenshots
 */
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FakeOllama } from "../harness/fake-ollama.ts";
import type { FakeOllamaModel } from "../harness/fake-ollama-model.ts";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { Site } from "../harness/start-site.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const root = join(import.meta.dirname, "../..");
const folder = join(root, "screenshots");
const busyMs = 50_000;

const gib = 1_073_741_824;
const coder: FakeOllamaModel = {
  name: "qwen3-coder:30b",
  capabilities: ["completion", "tools"],
  sizeBytes: 18 * gib,
  loadedTokens: 65_536,
  trainedTokens: 262_144,
};
const llama: FakeOllamaModel = {
  name: "llama3.2:latest",
  capabilities: ["completion", "tools"],
  sizeBytes: 2 * gib,
  loadedTokens: 16_384,
};
const gemma: FakeOllamaModel = {
  name: "gemma3:12b",
  capabilities: ["completion", "vision"],
  sizeBytes: 8 * gib,
  loadedTokens: 32_768,
};
const oss: FakeOllamaModel = {
  name: "gpt-oss:20b",
  capabilities: ["completion", "tools", "thinking"],
  sizeBytes: 13 * gib,
};
const embed: FakeOllamaModel = { name: "nomic-embed-text:latest", capabilities: ["embedding"], sizeBytes: gib / 4 };

const machines: Readonly<Record<string, readonly FakeOllamaModel[]>> = {
  "home-4090": [coder, llama, embed],
  "mac-studio": [coder, gemma, oss],
  attic: [llama, gemma],
};
const asked = ["qwen3-coder:30b", "llama3.2", "gemma3:12b", "gpt-oss:20b", "gpt-4o"];

const pages: Readonly<Record<string, string>> = {
  overview: "",
  machines: "/machines",
  models: "/models",
  model: `/models/of/${encodeURIComponent("qwen3-coder:30b")}`,
  keys: "/keys",
  requests: "/requests",
  usage: "/usage",
  playground: "/playground?model=llama3.2",
};
/** The pictures of the README, and the theme of each. */
const shownInReadme: Readonly<Record<string, string>> = {
  "overview-light": "console-overview.png",
  "requests-dark": "console-requests.png",
};

const found = await findBrowser();
if (found.path === undefined) throw new Error(found.reason);
await using parts = new AsyncDisposableStack();
const site = parts.use(await Site.start());
const settings = { TRUNKLINE_STATE_DIR: site.stateDir, TRUNKLINE_OPERATIONS_URL: site.up.operationsUrl };
const attic = await startMachines();
await trunkline(["keys", "issue", "--name", "alice's editor", "--rpm", "60", "--budget", "2000000/month"], settings);
await trunkline(["routes", "set", "gpt-4o", "qwen3-coder:30b", "--then", "gpt-oss:20b"], settings);
const stop = new AbortController();
const traffic = sendRequests(stop.signal);
await sleep(busyMs);
await attic.kill();
await sleep(4_000);
await takePictures(found.path);
stop.abort();
await traffic;

async function startMachines() {
  for (const [machine, models] of Object.entries(machines)) {
    const ollama = parts.use(await FakeOllama.start({ models }));
    ollama.onChat = async (chat) => {
      await sleep(80 + Math.random() * 250);
      const words = 20 + Math.random() * 120;
      for (let word = 0; word < words; word += 1) {
        chat.say("word ");
        await sleep(18 + Math.random() * 10);
      }
      chat.done({ prompt_eval_count: 400 + Math.round(Math.random() * 6_000), eval_count: Math.round(words) });
    };
    const runtime = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url, TRUNKLINE_SLOTS: "4" };
    const agent = await site.startAgent(["--join", await site.joinLine(machine)], runtime);
    await until(async () => (await site.endpoint.models()).ids.includes(models[0]?.name.replace(":latest", "") ?? ""), {
      what: `the models of ${machine}`,
      timeoutMs: 20_000,
    });
    if (machine === "attic") return agent;
  }
  throw new Error("there is no machine that could die");
}

/** Sends a few requests at once, some of them wrong, as a site of a few people sees them. */
async function sendRequests(signal: AbortSignal): Promise<void> {
  const running = new Set<Promise<unknown>>();
  while (!signal.aborted) {
    const model = Math.random() < 0.04 ? "llama-typo" : (asked[Math.floor(Math.random() * asked.length)] ?? "");
    const own: Promise<unknown> = site.endpoint
      .chat({ model, says: "Hello", stream: true })
      .then((answer) => answer.text())
      .catch(() => undefined);
    running.add(own);
    void own.finally(() => running.delete(own));
    await sleep(150 + Math.random() * 500);
  }
  await Promise.allSettled(running);
}

async function takePictures(path: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const browser = parts.adopt(await launchBrowser(path), (each) => each.close());
  const { stdout: link } = await trunkline(["console"], settings);
  for (const colorScheme of ["light", "dark"] as const) {
    const context = await browser.newContext({
      viewport: { width: 1_280, height: 800 },
      deviceScaleFactor: 1,
      colorScheme,
    });
    const page = await context.newPage();
    const key = readFileSync(join(site.stateDir, "admin-key"), "utf8").trim();
    await page.goto(colorScheme === "light" ? link.trim() : `${site.up.operationsUrl}/console`);
    if (colorScheme === "dark") {
      await page.getByLabel("Admin or viewer key").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
    }
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    for (const [name, place] of Object.entries(pages)) {
      await page.goto(`${site.up.operationsUrl}/console${place}`);
      await page.locator("h1").waitFor();
      if (name === "playground") {
        await page.getByLabel("Message").fill("Say a word or two.");
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
}
