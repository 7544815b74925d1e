import { hash, randomBytes } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { loginKeyPath, loginWish } from "#shared/protocol/login.ts";
import { issueKey } from "#shared/records/issue-key.ts";
import { openKeyStore } from "#shared/store/open-key-store.ts";
import { ownCommandHere } from "../../services/cli/commands/welcome.ts";
import { trunkline } from "../../services/cli/trunkline.ts";
import { OwnIdempotencyRecords } from "../../services/gateway/jobs/idempotency-records.ts";
import { BadKeys } from "../../services/gateway/keys/bad-keys.ts";
import { allowLogin, loginRoutes } from "../../services/gateway/members/authorize.ts";
import { createServer } from "../../services/gateway/server.ts";
import { serverOfTest } from "../harness/server-of-test.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { modelOf } from "../unit/cli/connect/model-of.ts";

const ada = "a".repeat(64);

/** A site whose members log in, on an embedded store, and the computer of one of them. */
async function memberAndSite() {
  const clock = new TurnableClock({ wallMs: Date.now() });
  const store = await openKeyStore({ stateDir: folderOfTest(), redisUrl: undefined, keyPepper: undefined }, { clock });
  const log = createLog({ level: "fatal", name: "gateway" });
  const server = createServer({ log, bodyBytesMax: 1_048_576, bodyLimitName: "bodyBytesMax" });
  onTestFinished(() => server.close().then(() => store.keys.close()));
  const codes = new OwnIdempotencyRecords(clock);
  server.get("/console/session", async () => ({ openid: "id.example.org" }));
  server.get("/v1/models", async () => ({ object: "list", data: [modelOf("qwen3:8b")] }));
  loginRoutes(server, {
    ...store,
    codes,
    badKeys: new BadKeys(clock),
    log,
    async makeKey({ person, team, computer }, request) {
      const wish = { name: `login on ${computer}`, person, scopes: ["*"], ttlMs: 90 * 86_400_000 };
      const { token, record } = await issueKey(wish, { ...store, clock, actor: { by: person, request: request.id } });
      return { id: record.id, key: token.reveal(), team, expires_at: new Date(record.expiresAt).toISOString() };
    },
  });
  const site = await server.listen({ host: "127.0.0.1", port: 0 });
  const home = folderOfTest();
  const environment = { HOME: home, USERPROFILE: home, TRUNKLINE_STATE_DIR: join(home, "none") };
  const file = join(home, ".config/trunkline/logins.json");

  /** Stands for the page once a member confirms. Returns the address to which it sends the browser. */
  const confirm = (page: string): Promise<string> => {
    const { port, ...fields } = Object.fromEntries(new URL(page).searchParams);
    return allowLogin(loginWish.parse({ team: "research", ...fields, port: Number(port) }), ada, { ...store, codes });
  };
  const answer = async (page: string): Promise<string> => textAt(await confirm(page));
  /** Runs `trunkline login`, and plays the browser that opens its address. */
  const login = async (browse: (page: string) => Promise<unknown> = answer, at = site) => {
    let [out, err] = ["", ""];
    let browsed: Promise<unknown> | undefined;
    const exitCode = await trunkline({
      arguments: ["login", at, "--no-browser"],
      environment,
      stdout: { write: (text) => (out += text) },
      stderr: {
        write: (text) => {
          err += text;
          const [, page] = /^ {2}(http\S+)$/m.exec(err) ?? [];
          if (page !== undefined) browsed ??= browse(page);
        },
      },
    });
    return { exitCode, out, err, seen: await browsed };
  };
  const run = (...args: string[]) => trunklineHere(args, environment);
  const live = async () => (await store.keys.list()).filter(({ revokedAt }) => revokedAt === undefined);
  return { site, clock, codes, environment, confirm, login, run, live, file };
}

const textAt = async (url: string): Promise<string> => (await fetch(url)).text();

test("a login keeps its key in a file of the user alone, and chat, connect and models use it", async () => {
  const { site, environment, login, run, live, file } = await memberAndSite();
  expect((await run("models")).err).toContain("After `trunkline login <url>` it lists the models of your own key.");
  const { exitCode, out, err, seen } = await login();
  expect({ exitCode, seen }).toEqual({ exitCode: 0, seen: expect.stringContaining("You are logged in") });
  const [key] = await live();
  expect(key?.name).toMatch(/^login on /);
  expect(out).toContain(`the key ${key?.id} of the team research is valid until`);
  expect(err).toContain(`make a key at ${site}/console`);
  // A person who came by npx has no `trunkline` on the PATH.
  expect(err).toContain(`\`${ownCommandHere(environment)} models\` lists`);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(`${out}${err}`).not.toContain(JSON.parse(await readFile(file, "utf8"))[0].key);
  expect((await run("models")).out).toMatch(/qwen3:8b +chat/);
  expect((await run("connect", "claude", "--print")).out).toContain(site);
  expect((await run("completion", "bash", "=qw", "chat")).out).toBe("qwen3:8b\n");
});

test("a login is answered only by the browser that brings its state to its port, and once", async () => {
  const { confirm, login, live } = await memberAndSite();
  const { exitCode, seen } = await login(async (page) => {
    const right = new URL(await confirm(page));
    const other = new URL(right);
    other.searchParams.set("state", randomBytes(32).toString("base64url"));
    const named = new URL(right);
    named.hostname = "localhost";
    const refused = [await textAt(other.href), await textAt(named.href), await textAt(`${right.origin}/favicon.ico`)];
    refused.push(await (await fetch(right, { method: "POST" })).text());
    return [...refused, ...(await Promise.all([textAt(right.href), textAt(right.href)]))];
  });
  const refusal = expect.stringContaining("no answer to the login that waits here");
  expect(seen).toEqual([refusal, refusal, refusal, refusal, expect.stringContaining("You are logged in"), refusal]);
  expect(exitCode).toBe(0);
  expect(await live()).toHaveLength(1);
});

test("a code is good once, for a minute, and for the login alone that it was made for", async () => {
  const { site, clock, codes, confirm, live } = await memberAndSite();
  const [state, verifier] = [randomBytes(32).toString("base64url"), randomBytes(32).toString("base64url")];
  const fresh = async () => {
    const challenge = hash("sha256", verifier, "base64url");
    const page = `${site}/?${new URLSearchParams({ port: "5000", state, challenge, computer: "laptop" }).toString()}`;
    return new URL(await confirm(page)).searchParams.get("code") ?? "";
  };
  const redeem = async (changed: object): Promise<unknown> => {
    const body = JSON.stringify({ port: 5_000, state, verifier, code: await fresh(), ...changed });
    const answer = await fetch(site + loginKeyPath, {
      method: "POST",
      body,
      headers: { "content-type": "application/json" },
    });
    return answer.status === 200 || Object(await answer.json()).error;
  };
  const refusal = (message: string) => ({
    code: "invalid_value",
    param: "code",
    message: expect.stringContaining(message),
  });
  const foreign = expect.objectContaining(refusal("belongs to another login"));
  expect(await redeem({ verifier: "v".repeat(43) })).toEqual(foreign);
  expect(await redeem({ state: "s".repeat(43) })).toEqual(foreign);
  expect(await redeem({ port: 5_001 })).toEqual(foreign);
  // A writer of the store names another person in the record of a login of their own.
  const altered = await fresh();
  const at = { keyId: `login-${altered.slice(-2)}`, name: altered };
  const held = await codes.put(at, { owner: "", digest: "" }, { from: "nobody", forMs: 1 });
  const { owner: from = "", digest = "" } = held ?? {};
  await codes.put(at, { owner: from.replace(ada, "b".repeat(64)), digest }, { from, forMs: 60_000 });
  expect(await redeem({ code: altered })).toEqual(foreign);
  const code = await fresh();
  expect(await redeem({ code })).toBe(true);
  expect(await redeem({ code })).toEqual(expect.objectContaining(refusal("was used before")));
  expect(await redeem({ code: "c".repeat(3_000) })).toMatchObject({ code: "request_too_large" });
  const late = await fresh();
  clock.advance(60_000);
  expect(await redeem({ code: late })).toEqual(expect.objectContaining(refusal("is older than 60 s (loginCodeMs)")));
  expect(await live()).toHaveLength(1);
});

test("a wish for a login names a port of 127.0.0.1, and no other place", () => {
  const secret = "s".repeat(43);
  const wish = { port: 5_000, state: secret, challenge: secret, computer: "laptop", team: "research" };
  expect(loginWish.safeParse(wish).success).toBe(true);
  for (const changed of [{ redirect_uri: "https://evil.example" }, { port: 80 }, { port: "5000@evil.example" }])
    expect(loginWish.safeParse({ ...wish, ...changed }).success).toBe(false);
});

test("logout revokes the key and forgets it, and a second login replaces the first", async () => {
  const { site, login, run, live, file } = await memberAndSite();
  const ids = async () => (await live()).map(({ id }) => id);
  await login();
  const [first] = await ids();
  await login();
  expect(await ids()).toEqual([expect.not.stringMatching(String(first))]);
  expect(await run("logout", "https://other.example")).toMatchObject({ exitCode: exitCodes.failed });
  expect(await run("logout", "--all", "--json")).toMatchObject({ exitCode: 0, out: expect.stringContaining(site) });
  expect(await ids()).toEqual([]);
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual([]);
  expect((await run("chat", "qwen3:8b", "Hello")).err).toContain("`trunkline login`");
});

test("a logout keeps the login whose site cannot be asked, and says so", async () => {
  const { login, run, file } = await memberAndSite();
  await login();
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:9"));
  const { exitCode, err } = await run("logout");
  expect({ exitCode, err }).toEqual({
    exitCode: exitCodes.unavailable,
    err: expect.stringContaining("127.0.0.1:9 cannot be reached"),
  });
  expect(await readFile(file, "utf8")).toContain("trunkline_");
});

test("a key or a store that is given is used in place of a login", async () => {
  const { environment, login } = await memberAndSite();
  await login();
  const here = await trunklineHere(["models"], { ...environment, TRUNKLINE_OPERATIONS_URL: "http://127.0.0.1:9" });
  expect(here.err).toContain("admin key");
  const keyed = await trunklineHere(["chat", "m", "Hello"], { ...environment, TRUNKLINE_KEY: "nonsense" });
  expect(keyed.err).toContain("TRUNKLINE_KEY is no API key");
});

test("a person who refuses gets no key, and a site without sign-in opens no browser", async () => {
  const { login, live } = await memberAndSite();
  const refused = await login((page) => {
    const { port, state } = Object.fromEntries(new URL(page).searchParams);
    return textAt(`http://127.0.0.1:${port}/?error=access_denied&state=${state}`);
  });
  expect(refused).toMatchObject({ exitCode: exitCodes.failed, err: expect.stringContaining("refused in the browser") });
  expect(await live()).toEqual([]);
  const error = { message: "no", type: "invalid_request_error", param: null, code: "unknown_url" };
  const bare = await serverOfTest((_, response) => void response.writeHead(404).end(JSON.stringify({ error })));
  const none = await login(() => expect.fail("a browser was opened"), bare);
  expect(none).toMatchObject({
    exitCode: exitCodes.failed,
    err: expect.stringContaining("gives its members keys (HTTP 404)"),
  });
});
