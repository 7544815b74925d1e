import { hash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { z } from "zod";
import type { Environment } from "#shared/process/config.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { loginEndPath, loginKey, loginKeyPath, loginPath } from "#shared/protocol/login.ts";
import { publicOrigin } from "#shared/protocol/pairing.ts";
import { askSite, openSite, SiteFailure } from "#shared/site/reach-site.ts";
import { type Login, loginsFile, readLogins, writeLogins } from "../site/logins.ts";
import { openLoopback } from "../site/loopback-return.ts";
import { type CliCommand, type CliContext, commandIn, here, readBy } from "../terminal/command-line.ts";
import { openBrowser } from "../terminal/open-browser.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { ownCommandHere } from "./welcome.ts";

interface LoginOptions {
  readonly team?: string;
  readonly browser: boolean;
}

export function loginCommand(context: CliContext): CliCommand {
  return commandIn("login", context)
    .argument("<url>", "the address of the site", readBy(publicOrigin))
    .option("--team <name>", "the team whose key it is; otherwise you choose in the browser")
    .option("--no-browser", "open no browser; open the address yourself, on this computer")
    .more(`
A page of the site shows which computer asks, and for what. You sign in and confirm there. The key is kept in the file
trunkline/logins.json of your configuration folder, which you alone can read. "chat", "connect" and "models" use it at that
site, and without a site where neither the environment nor a "trunkline up" has a key. Another login revokes the one before.
Without a browser, make a key at <url>/console on another computer, and set TRUNKLINE_KEY to it.

Examples:
  trunkline login https://models.example.org
  npx -y https://models.example.org/agent.tgz login https://models.example.org`)
    .does(here, (_, origin: string, given: LoginOptions) => logIn(origin, given, context));
}

export function logoutCommand(context: CliContext): CliCommand {
  return commandIn("logout", context)
    .argument("[url]", "the site; may be left out where you are logged in at one", readBy(publicOrigin))
    .option("--all", "log out of all sites of the file")
    .more(`
Revokes the key and removes it from the file, once the site has confirmed that. Programs that "trunkline connect" gave this key
lose it too. Keys of other computers stay: <url>/console lists and revokes them.`)
    .does(here, (_, named: string | undefined, given: { readonly all?: true }) => logOut(named, given, context));
}

async function logIn(origin: string, { team, browser }: LoginOptions, { environment, stderr }: CliContext) {
  const site = openSite({ origin, environment });
  // A site without members refuses this before a browser opens.
  await askSite(site, { method: "GET", path: "/console/session" }, z.object({ openid: z.string() }));
  const [state, verifier] = [randomBytes(32).toString("base64url"), randomBytes(32).toString("base64url")];
  using loopback = await openLoopback(state);
  const { port } = loopback;
  const challenge = hash("sha256", verifier, "base64url");
  const wish = { port: String(port), state, challenge, computer: hostname().slice(0, 60), ...(team && { team }) };
  const url = `${origin}${loginPath}?${new URLSearchParams(wish).toString()}`;
  const byHand = `Without a browser, make a key at ${origin}/console, and set TRUNKLINE_KEY to it.\n`;
  stderr.write(`Confirm the login in a browser on this computer:\n  ${url}\n${browser ? "" : byHand}`);
  if (browser) openBrowser(url, () => stderr.write(byHand));
  const { code, tell } = await loopback.returned;
  try {
    if (code === null) throw new StartFailure(exitCodes.failed, "The login was refused in the browser.");
    const body = { port, state, verifier, code };
    const login = { ...(await askSite(site, { method: "POST", path: loginKeyPath, body }, loginKey)), site: origin };
    const before = readLogins(environment);
    writeLogins(environment, [...before, login]);
    await tell(200, `You are logged in at ${origin}. Close this page and go back to the terminal.`);
    for (const old of before.filter((each) => each.site === origin)) {
      await end(old, environment).catch((error: unknown) => {
        stderr.write(`The key ${old.id} of the login before is not revoked: ${String(error)}\n`);
      });
    }
    const { key: _key, ...shown } = login;
    const command = ownCommandHere(environment);
    return {
      answer: { ...shown, file: loginsFile(environment) },
      text: `Logged in at ${origin}: the key ${login.id} of the team ${onOneLine(login.team)} is valid until ${utcTime(login.expires_at)}.`,
      remark: `\`${command} models\` lists what it may call, and \`${command} connect\` configures a client.`,
    };
  } catch (error) {
    await tell(400, "The login failed: the terminal says why.");
    throw error;
  }
}

async function logOut(named: string | undefined, { all }: { readonly all?: true }, { environment }: CliContext) {
  const wanted = readLogins(environment).filter(({ site }) => all || named === undefined || site === named);
  const sites = [...new Set(wanted.map(({ site }) => site))].join(", ");
  if (sites === "")
    throw new StartFailure(exitCodes.failed, `You are not logged in ${named ? `at ${named}` : "here"}.`);
  if (sites.includes(",") && !all) throw new StartFailure(exitCodes.usage, `Name one site, or --all: ${sites}.`);
  for (const login of wanted) await end(login, environment);
  return { answer: { logged_out: wanted.map(({ site, id }) => ({ site, id })) }, text: `Logged out of ${sites}.` };
}

/** Revokes the key of a login, and forgets it. A key that the site refuses has ended before. */
async function end({ site: origin, key }: Login, environment: Environment): Promise<void> {
  const request = { method: "POST", path: loginEndPath, body: { key } } as const;
  await askSite(openSite({ origin, environment }), request, z.object({ revoked: z.literal(true) })).catch((error) => {
    if (!(error instanceof SiteFailure) || !["key_invalid", "key_expired"].includes(error.code ?? "")) throw error;
  });
  const left = readLogins(environment).filter((each) => each.key !== key);
  writeLogins(environment, left);
}
