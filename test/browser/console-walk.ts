import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import { watchComplaints } from "../harness/find-browser.ts";
import type { SomebodysSite } from "./somebodys-site.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/** Returns each rule of accessibility that a page breaks, with the elements that do. */
export async function brokenRules(page: Page): Promise<string[]> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe);
  const { violations } = await page.evaluate<AxeResults>("axe.run(document, { resultTypes: ['violations'] })");
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** The stages of a site, in their order. */
export const stages = ["empty", "usual", "full", "away"] as const;
export type Stage = (typeof stages)[number];

const looks = {
  light: { width: 1_440, height: 900 },
  dark: { width: 360, height: 780 },
} as const;
export type Look = keyof typeof looks;

/** A longer picture is of the first screen alone. */
const pictureHeightMax = 4_000;

interface WalkOptions {
  readonly looks?: readonly Look[];
  /** The folder of the pictures; none are taken without one. */
  readonly pictures?: string | undefined;
}

interface Place {
  readonly page: Page;
  readonly look: Look;
  readonly stage: Stage;
  /** The kind of page: its path, with `*` for the name of a machine, a key and the like. */
  readonly kind: string;
  readonly address: string;
  /** The requests of the page that the gateway has not answered. */
  readonly pending: ReadonlySet<Request>;
}

/**
 * Walks all pages and dialogs of the console. It finds them as a viewer does: by the links of each page, of which the first that
 * leads to a kind of page stands for all of its kind, and by the buttons that say that they open a dialog.
 */
export class ConsoleWalk implements AsyncDisposable {
  /** The problems that the walk found, in words. */
  readonly problems: string[] = [];
  /** The time in milliseconds until a page was there as a whole, by stage and address. */
  readonly usableMs = new Map<string, number>();
  readonly #browser: Browser;
  readonly #site: SomebodysSite;
  readonly #contexts = new Map<Look, BrowserContext>();

  constructor(browser: Browser, site: SomebodysSite) {
    this.#browser = browser;
    this.#site = site;
  }

  /** Walks each page that it finds, with its dialogs. Returns the kinds of pages. */
  async walk(stage: Stage, options: WalkOptions = {}): Promise<readonly string[]> {
    const { looks: wanted = ["light", "dark"], pictures } = options;
    const opened = [];
    for (const look of wanted) opened.push({ look, stage, ...(await this.#signedIn(look)) });
    const [first] = opened;
    if (first === undefined) return [];
    const found = await this.#findPages(first);
    if (stage === "away") await this.#site.endGateway();
    for (const one of opened) {
      for (const [kind, address] of found) {
        const place = { ...one, address, kind };
        await (stage === "away" ? this.#goOn(place) : this.#open(place));
        await this.#judge(place, pictures);
        if (stage !== "away") await this.#walkDialogs(place, pictures);
      }
      this.problems.push(...one.complaints.map((each) => `${stage}, ${one.look}: ${each}`));
      await one.page.close();
    }
    return [...found.keys()];
  }

  async #findPages(one: Omit<Place, "address" | "kind">): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>([["", "/console"]]);
    // Pages that are found are looked at too.
    for (const [kind, address] of found) {
      this.usableMs.set(`${one.stage} /${kind}`, await this.#open({ ...one, kind, address }));
      const isFound = (link: string): boolean => [...found.values()].includes(link);
      for (const [of, link] of await linksOf(one.page)) if (!isFound(link)) found.set(of, found.get(of) ?? link);
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const context of this.#contexts.values()) await context.close();
  }

  async #signedIn(look: Look) {
    const known = this.#contexts.get(look);
    const context =
      known ?? (await this.#browser.newContext({ viewport: looks[look], colorScheme: look, reducedMotion: "reduce" }));
    this.#contexts.set(look, context);
    context.setDefaultTimeout(15_000);
    const page = await context.newPage();
    const complaints = watchComplaints(page);
    const pending = new Set<Request>();
    page.on("request", (request) => void (request.resourceType() === "fetch" && pending.add(request)));
    for (const end of ["requestfinished", "requestfailed"] as const) {
      page.on(end as "requestfinished", (request) => void pending.delete(request));
    }
    await page.goto(`${this.#site.gateway.operationsUrl}/console`);
    if (known === undefined) {
      await page.getByLabel("Admin or viewer key").fill(this.#site.adminKey);
      await page.getByRole("button", { name: "Sign in" }).click();
    }
    await page.locator("main h1").waitFor();
    return { page, complaints, pending };
  }

  /** Opens an address, and returns the time until the page has all that it asked the gateway for. */
  async #open(place: Place): Promise<number> {
    const { page, address } = place;
    const begun = performance.now();
    await page.goto(this.#site.gateway.operationsUrl + address);
    await this.#untilWhole(place);
    return performance.now() - begun;
  }

  /** Goes to an address as a link does, without a gateway that could load the page anew. */
  async #goOn(place: Place): Promise<void> {
    const to = JSON.stringify(place.address);
    await place.page.evaluate(`history.pushState(null, "", ${to}); dispatchEvent(new PopStateEvent("popstate"))`);
    await this.#untilWhole(place);
    await place.page.getByText(/has not answered for/).waitFor();
  }

  async #untilWhole({ page, pending }: Pick<Place, "page" | "pending">): Promise<void> {
    await page.locator("main h1").waitFor();
    do await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    while (pending.size > 0);
  }

  async #walkDialogs(place: Place, pictures: string | undefined): Promise<void> {
    const { page, kind: at, stage, look } = place;
    const buttons = page.locator('[aria-haspopup="dialog"]:visible');
    const names = await buttons.evaluateAll((all) =>
      all.map((each) => each.getAttribute("aria-label") ?? each.textContent),
    );
    const seen = new Set<string>();
    for (const name of names) {
      // Each row of a list has the same buttons, and the side has its own on all pages.
      const kind = name.replace(/ .*"|:.*/, "");
      if (seen.has(kind) || (kind.startsWith("Sign out") && at !== "")) continue;
      seen.add(kind);
      await buttons
        .filter({ hasText: name })
        .or(page.getByLabel(name, { exact: true }))
        .first()
        .click();
      const dialog = page.locator("dialog[open]");
      const isOpen = await dialog.waitFor({ timeout: 3_000 }).then(
        () => true,
        () => false,
      );
      if (!isOpen) {
        this.problems.push(`${stage}, ${look}, /${at}: the button "${name}" opens no dialog`);
        continue;
      }
      await this.#untilWhole(place);
      await this.#judge({ ...place, kind: `${at} ${kind}` }, pictures);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    }
  }

  async #judge({ page, look, stage, kind }: Place, pictures: string | undefined): Promise<void> {
    const where = `${stage}, ${look}, /${kind}`;
    const rules = await brokenRules(page);
    const overflow = await page.evaluate<string[]>(findOverflow);
    const nameless = await page.evaluate<string[]>(findNameless);
    this.problems.push(...[...rules, ...overflow, ...nameless].map((each) => `${where}: ${each}`));
    if (pictures === undefined) return;
    mkdirSync(pictures, { recursive: true });
    const fullPage = (await page.evaluate<number>("document.body.scrollHeight")) < pictureHeightMax;
    const name = kind.replaceAll("*", "one").replaceAll(/\W+/g, "-").toLowerCase() || "overview";
    await page.screenshot({ path: join(pictures, `${stage}-${name}-${look}.png`), fullPage });
  }
}

/** Returns the links of a page within the console by the kind of page that they lead to. A link of a `nav` is a kind of its own. */
async function linksOf(page: Page): Promise<(readonly [kind: string, address: string])[]> {
  const links = await page.locator('a[href^="/console"]').evaluateAll((all) =>
    all.map((each) => ({
      path: each.getAttribute("href")?.replace(/[?#].*/, "") ?? "",
      isNamed: each.closest("nav") !== null,
    })),
  );
  return links.map(({ path, isNamed }) => {
    const parts = path.split("/").slice(2);
    return [isNamed || parts.length < 2 ? parts.join("/") : [...parts.slice(0, -1), "*"].join("/"), path] as const;
  });
}

/** Runs in the page: names tables whose rows hide the name of their object, as a narrow screen may. */
const findNameless = `[...document.querySelectorAll("td:first-child a")]
  .filter((each) => each.getClientRects().length === 0)
  .map((each) => "a row hides its name: " + each.textContent)`;

/** Runs in the page: names what makes it scroll sideways. */
const findOverflow = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  const isWide = (each) => each.getBoundingClientRect().right > clientWidth;
  const [wide] = [...document.querySelectorAll("body *")].filter(isWide);
  return scrollWidth > clientWidth ? ["it scrolls sideways: " + wide?.outerHTML.slice(0, 200)] : [];
})()`;
