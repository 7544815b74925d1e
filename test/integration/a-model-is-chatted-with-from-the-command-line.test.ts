import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { findBinary } from "../harness/find-binary.ts";
import { freePort } from "../harness/free-port.ts";
import { serverOfTest } from "../harness/server-of-test.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import type { Settings } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";

let up: UpProcess;
let site: Settings;
beforeAll(async () => {
  up = await startUp();
  site = { TRUNKLINE_BASE_URL: new URL(up.endpoint.baseUrl).origin, TRUNKLINE_STATE_DIR: up.stateDir };
});
afterAll(() => up[Symbol.asyncDispose]());

interface Run {
  readonly settings?: Settings;
  readonly stdin?: string;
  readonly isTTY?: boolean;
}

const chat = (args: readonly string[], { settings = {}, stdin = "", isTTY = false }: Run = {}) =>
  trunklineHere(["chat", ...args], { ...site, ...settings }, { stdin: Readable.from([Buffer.from(stdin)]), isTTY });

test("chat streams the answer to a message on the command line, with the key of the state folder", async () => {
  const answer = { exitCode: 0, out: "a-0 a-1 \n", err: "" };
  expect(await chat(["scripted", "/script", "tokens=2", "nonce=a"])).toEqual(answer);
  expect(await chat(["scripted", "/script tokens=2 nonce=a"])).toEqual(answer);
  expect(await chat(["scripted", "/script tokens=2 nonce=a", "--base-url", up.endpoint.baseUrl])).toEqual(answer);
  const settings = { TRUNKLINE_STATE_DIR: "/nowhere", TRUNKLINE_KEY: up.endpoint.key };
  expect(await chat(["scripted", "/script tokens=2 nonce=a"], { settings })).toEqual(answer);
});

test("chat takes the message from standard input", async () => {
  expect(await chat(["scripted"], { stdin: "/script tokens=1 nonce=b\n" })).toMatchObject({
    exitCode: 0,
    out: "b-0 \n",
  });
  const nothing = await chat(["scripted"], { stdin: "\n" });
  expect(nothing).toEqual({ exitCode: exitCodes.usage, out: "", err: expect.stringContaining("no message") });
});

test("chat shows what a model thinks dim on a terminal, and nowhere else", async () => {
  const args = ["scripted", "/script tokens=1 think=2 nonce=c"];
  expect((await chat(args)).out).toBe("c-0 \n");
  const dimmed = "\u001b[2mthink-0 think-1 \u001b[22m\n\nc-0 \n";
  expect((await chat(args, { isTTY: true })).out).toBe(dimmed);
  const plain = await chat(args, { isTTY: true, settings: { NO_COLOR: "1" } });
  expect(plain.out).toBe("think-0 think-1 \n\nc-0 \n");
});

const fresh = (kind?: "admin"): Settings => ({ TRUNKLINE_KEY: mintKeyToken(kind).reveal() });
const { failed, unavailable, config } = exitCodes;
const refused: readonly (readonly [why: string, args: string[], settings: Settings, code: number, said: RegExp])[] = [
  ["an unknown model", ["nothing-here", "hi"], {}, failed, /^trunkline: .*nothing-here.* \(model_not_found\)\n$/],
  ["a failure in the stream", ["scripted", "/script tokens=3 fail_at=1"], {}, unavailable, /\(upstream_error\)\n$/],
  ["a revoked key", ["scripted", "hi"], fresh(), config, /\(key_invalid\)\n$/],
  ["an admin key", ["scripted", "hi"], fresh("admin"), config, /TRUNKLINE_KEY is no API key/],
  ["a missing key", ["scripted", "hi"], { TRUNKLINE_STATE_DIR: "/nowhere" }, config, /set TRUNKLINE_KEY .*nowhere/],
];
test.each(refused)("chat explains %s in one line", async (_, args, settings, exitCode, said) => {
  const { err, ...result } = await chat(args, { settings });
  expect(result).toMatchObject({ exitCode });
  expect(err).toMatch(said);
  expect(err.split("\n")).toHaveLength(2);
});

async function answering(status: number, body: string): Promise<Settings> {
  const url = await serverOfTest((_, response) => void response.writeHead(status).end(body));
  return { TRUNKLINE_BASE_URL: `${url}/v1` };
}
const event = (content: string): string =>
  `data: ${JSON.stringify({ choices: [{ delta: { content }, finish_reason: "length" }] })}\n\n`;

test("chat removes the characters of a model that could control the terminal, and reports a cut answer", async () => {
  const settings = await answering(200, `${event("a\u001b[2J\tb\u202e\n")}data: [DONE]\n\n`);
  const { out, err } = await chat(["m", "hi"], { settings, isTTY: true });
  expect(out).toBe("a[2J\tb\n");
  expect(err).toMatch(/length/);
  expect((await chat(["m", "hi"], { settings })).out).toBe("a\u001b[2J\tb\u202e\n");
});

test("chat reports an answer that breaks off", async () => {
  const { exitCode, err } = await chat(["m", "hi"], { settings: await answering(200, event("a")) });
  expect(exitCode).toBe(exitCodes.unavailable);
  expect(err).toContain("the answer broke off");
});

test.each([
  [404, "<html>"],
  [200, 'data: {"choices":7}\n\n'],
])("chat recognises a server that is no gateway, by a status %i with %s", async (status, body) => {
  const { exitCode, err } = await chat(["m", "hi"], { settings: await answering(status, body) });
  expect(exitCode).toBe(exitCodes.unavailable);
  expect(err).toMatch(/is no gateway of Trunkline/);
});

test("chat reports that nothing listens, and how to name another place", async () => {
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  const { exitCode, err } = await chat(["m", "hi"], { settings: { TRUNKLINE_BASE_URL: nowhere } });
  expect(exitCode).toBe(exitCodes.unavailable);
  expect(err).toMatch(/^trunkline: Nothing listens at \S+\/v1: .*--base-url/);
});

const script = await findBinary("script");
if (script === undefined) console.log("Skipping the chat on a terminal: there is no `script` on the PATH.");

test.skipIf(script === undefined)(
  "a chat on a terminal goes on after Ctrl-C, takes pasted lines as one message, and ends with Ctrl-D",
  async () => {
    const main = join(import.meta.dirname, "../../services/cli/main.ts");
    // `exec` leaves no shell that Ctrl-C would end with 130, as dash does.
    const command = `exec '${process.execPath}' '${main}' chat scripted`;
    const child = spawn(script ?? "script", ["-qefc", command, "/dev/null"], { env: { ...process.env, ...site } });
    let shown = "";
    child.stdout.on("data", (piece) => (shown += String(piece)));
    const shows = (what: RegExp): Promise<unknown> =>
      until(() => what.test(shown), { what: `${what} on the terminal` });
    const type = (keys: string): void => void child.stdin.write(keys);

    await shows(/> /);
    type("/script tokens=1000 delay_ms=20 nonce=d\r");
    await shows(/d-3/);
    type("\u0003");
    await shows(/Interrupted[^]*> /);
    type("one\rtwo\r");
    await shows(/You have reached Trunkline's demonstration[^]*for longer[^]*> /);
    expect(shown.match(/You have reached/g)).toHaveLength(1);
    type("\u0004");
    const [exitCode] = await once(child, "exit");
    expect(exitCode).toBe(0);
    expect(await text(child.stderr)).toBe("");
  },
);
