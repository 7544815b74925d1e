import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { addTeam } from "../harness/add-team.ts";
import { findBrowser, launchBrowser } from "../harness/find-browser.ts";
import { freePort } from "../harness/free-port.ts";
import { type GatewayInProcess, startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { OpenIdPeople } from "../harness/openid-people.ts";
import { makeSelfSigned } from "../harness/self-signed.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { launchTrunkline, type Settings, trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { ConsolePage } from "./console-page.ts";

const found = await findBrowser();

describe.skipIf(found.path === undefined || process.platform === "win32")("trunkline login", () => {
  let browser: Browser;
  let people: OpenIdPeople;
  let site: GatewayInProcess;
  let url: string;
  let certificate: string;
  beforeAll(async () => {
    url = `https://127.0.0.1:${await freePort()}`;
    people = await OpenIdPeople.start(`${url}/console/openid/done`);
    const files = await makeSelfSigned();
    certificate = files.TRUNKLINE_TLS_CERT;
    site = await startGatewayInProcess({
      env: {
        ...people.settings,
        ...files,
        TRUNKLINE_OIDC_ROLES: "*=member",
        TRUNKLINE_PUBLIC_URL: url,
        TRUNKLINE_PORT: new URL(url).port,
      },
    });
    await site.issue();
    await addTeam(site.store, "research", { scopes: ["script*"] });
    await addTeam(site.store, "staff", {});
    people.claims.set("anna", { groups: ["research", "staff"], email: "anna@example.org", email_verified: true });
    browser = await launchBrowser(found.path ?? "");
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    await site?.[Symbol.asyncDispose]();
    await people?.[Symbol.asyncDispose]();
  });

  /** A computer whose command to open a browser notes the address, and the browser of its user. */
  async function computer() {
    const home = folderOfTest();
    const [opener, opened] = [join(home, process.platform === "darwin" ? "open" : "xdg-open"), join(home, "opened")];
    await writeFile(opener, `#!/bin/sh\nprintf %s "$1" > ${opened}.draft && mv ${opened}.draft ${opened}\n`);
    await chmod(opener, 0o755);
    const settings: Settings = {
      HOME: home,
      XDG_CONFIG_HOME: join(home, "config"),
      PATH: `${home}:${process.env["PATH"]}`,
      NODE_EXTRA_CA_CERTS: certificate,
    };
    const own = await ConsolePage.open(browser, url);
    onTestFinished(() => own[Symbol.asyncDispose]());
    const login = await launchTrunkline(["login", url, "--team", "research"], settings);
    onTestFinished(() => login[Symbol.asyncDispose]());
    const page = await until(() => readFile(opened, "utf8").catch(() => undefined), {
      what: "the command to open a browser",
    });
    return { own, login, page, settings };
  }

  test("a person signs in, allows the login, and calls a model, without an administrator", async () => {
    const { own, login, page, settings } = await computer();
    people.expect("anna");
    await own.go(page);
    await own.enter("link", /Sign in with 127\.0\.0\.1/);
    await own.heading("Log in on this computer?");
    for (const shown of ["anna@example.org", "127.0.0.1", "90 days", "script*"]) await own.sees(shown);
    expect(await own.page.getByLabel("Team of the key").inputValue()).toBe("research");
    await own.enter("button", "Allow");
    await own.sees(`You are logged in at ${url}`);
    expect([await login.exit(), await login.stdout()]).toEqual([0, expect.stringContaining("of the team research")]);
    const answer = await trunkline(["chat", "scripted", "/script tokens=2 nonce=a"], settings);
    expect(answer).toMatchObject({ exitCode: 0, stdout: "a-0 a-1 \n" });
    const [{ key }] = JSON.parse(
      await readFile(join(settings["XDG_CONFIG_HOME"] ?? "", "trunkline/logins.json"), "utf8"),
    );
    await own.go("");
    await own.page.getByRole("row", { name: /login on .*valid.*research/ }).waitFor();
    expect(own.complaints).toEqual([]);
    expect(await trunkline(["logout"], settings)).toMatchObject({ exitCode: 0 });
    await own.page.reload();
    await own.page.getByRole("row", { name: /login on .*revoked/ }).waitFor();
    expect(
      (await trunkline(["chat", "scripted", "Hello"], { ...settings, TRUNKLINE_KEY: key, TRUNKLINE_BASE_URL: url }))
        .exitCode,
    ).toBe(78);
  });

  test("a person refuses a login, and a login with hostile words leads to no other host", async () => {
    const { own, login, page } = await computer();
    people.expect("anna");
    await own.go("");
    await own.enter("link", /Sign in with 127\.0\.0\.1/);
    await own.heading("Keys");
    const hostile = new URL(page);
    hostile.searchParams.set("computer", "<img src=x onerror=alert(1)>");
    hostile.searchParams.set("port", "5000@evil.example");
    hostile.searchParams.set("redirect_uri", "https://evil.example");
    await own.go(hostile.href);
    await own.sees("<img src=x onerror=alert(1)>");
    await own.click("Allow");
    await own.page.getByRole("alert").getByText("port").waitFor();
    await own.go(page);
    await own.click("Refuse");
    await own.sees("The login failed");
    expect([await login.exit(), await login.stderr()]).toEqual([1, expect.stringContaining("refused in the browser")]);
  });
});
