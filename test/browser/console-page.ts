import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { watchComplaints } from "../harness/find-browser.ts";
import { trunkline } from "../harness/trunkline-command.ts";

/** Elements of a page that the Tab key passes before a test gives up. */
const tabsMax = 200;

/** A browser's page on the console of a gateway, with what it complained of. */
export class ConsolePage implements AsyncDisposable {
  readonly page: Page;
  readonly complaints: string[];
  readonly #context: BrowserContext;
  readonly #consoleUrl: string;

  private constructor(context: BrowserContext, page: Page, consoleUrl: string) {
    this.page = page;
    this.complaints = watchComplaints(page);
    this.#context = context;
    this.#consoleUrl = consoleUrl;
  }

  static async open(browser: Browser, operationsUrl: string): Promise<ConsolePage> {
    const context = await browser.newContext({ viewport: { width: 1_280, height: 900 }, ignoreHTTPSErrors: true });
    context.setDefaultTimeout(10_000);
    return new ConsolePage(context, await context.newPage(), `${operationsUrl}/console`);
  }

  /** Opens a sign-in link, or an address below the console. */
  async go(place: string): Promise<void> {
    const url = place.startsWith("http") ? place : this.#consoleUrl + place;
    // The same address with another fragment loads nothing.
    if (url.includes("#")) await this.page.goto("about:blank");
    await this.page.goto(url);
  }

  /** Waits until this text is shown. */
  async sees(text: string | RegExp, timeoutMs = 10_000): Promise<void> {
    await this.page.getByText(text).first().waitFor({ timeout: timeoutMs });
  }

  async heading(text: string): Promise<void> {
    await this.page.getByRole("heading", { level: 1, name: text }).waitFor();
  }

  click(name: string | RegExp): Promise<void> {
    return this.page.getByRole("button", { name, exact: true }).first().click();
  }

  /** Presses Tab until this element has the focus, as people without a mouse do. */
  async reach(element: Locator): Promise<void> {
    await element.first().waitFor();
    const wanted = element.and(this.page.locator(":focus"));
    for (let tabs = 0; tabs < tabsMax && (await wanted.count()) === 0; tabs += 1) await this.page.keyboard.press("Tab");
    await wanted.waitFor();
  }

  /** Reaches the element with this role and name, and presses Enter. */
  async enter(role: "button" | "link", name: string | RegExp): Promise<void> {
    await this.reach(this.page.getByRole(role, { name, exact: true }));
    await this.page.keyboard.press("Enter");
  }

  fill(label: string | RegExp, text: string): Promise<void> {
    return this.page.getByLabel(label, { exact: true }).first().fill(text);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#context.close();
  }
}

/** Returns a sign-in link, as `trunkline console` prints it. */
export async function signInLink(
  operationsUrl: string,
  adminKey: string,
  ...options: readonly string[]
): Promise<string> {
  const settings = { TRUNKLINE_OPERATIONS_URL: operationsUrl, TRUNKLINE_ADMIN_KEY: adminKey };
  const { exitCode, stdout, stderr } = await trunkline(["console", ...options], settings);
  if (exitCode !== 0) throw new Error(`trunkline console ended with ${exitCode}: ${stderr}`);
  return stdout.trim();
}
