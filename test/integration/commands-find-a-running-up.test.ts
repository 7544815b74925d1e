import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { freePort } from "../harness/free-port.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { type Settings, trunkline } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";

let up: UpProcess;
beforeAll(async () => void (up = await startUp()));
afterAll(() => up[Symbol.asyncDispose]());

/** Runs a command with the state folder of the running `up`, whose ports are not the usual ones. */
const run = (args: readonly string[], settings: Settings = {}) =>
  trunklineHere(args, { TRUNKLINE_STATE_DIR: up.stateDir, ...settings });

test("status and chat find the ports of an `up` that runs on their state folder", async () => {
  expect(await run(["status"])).toMatchObject({ exitCode: 0, out: expect.stringContaining("ready") });
  expect(await run(["chat", "scripted", "/script tokens=1 nonce=a"])).toEqual({ exitCode: 0, out: "a-0 \n", err: "" });
});

const report = z.object({ side: z.string(), checks: z.array(z.object({ name: z.string(), finding: z.string() })) });

/** Runs doctor, and returns the side that it looked at and its finding about the port. */
async function doctor(args: readonly string[] = [], settings: Settings = {}) {
  const { side, checks } = report.parse(JSON.parse((await run(["doctor", ...args, "--json"], settings)).out));
  return [side, checks.find(({ name }) => name === "port")?.finding];
}

test("doctor looks at the `up` that runs on its state folder, whatever its port", async () => {
  const { host } = new URL(up.endpoint.baseUrl);
  expect(await doctor()).toEqual(["site", `The gateway on ${host} is ready.`]);
  const port = String(await freePort());
  const named = await doctor([], { TRUNKLINE_PORT: port });
  expect(named).toEqual(["site", expect.stringContaining(`${port} is free`)]);
});

test("a second `up` on the folder is refused at any port, and names the port of the first", async () => {
  const settings = { TRUNKLINE_STATE_DIR: up.stateDir, TRUNKLINE_PORT: "0", TRUNKLINE_OPERATIONS_PORT: "0" };
  const second = await trunkline(["up"], { ...settings, TRUNKLINE_RUNTIME: "scripted" });
  expect(second.exitCode).toBe(69);
  expect(second.stderr).toContain(`at port ${new URL(up.endpoint.baseUrl).port} (${up.endpoint.baseUrl})`);
  expect((await run(["status"])).exitCode).toBe(0);
});

test("a port of the environment is asked in place of the one that `up` noted", async () => {
  const port = String(await freePort());
  const status = await run(["status"], { TRUNKLINE_OPERATIONS_PORT: port });
  expect(status.err).toContain(`Nothing listens at http://127.0.0.1:${port}`);
  const chat = await run(["chat", "scripted", "Hello"], { TRUNKLINE_PORT: port });
  expect(chat.err).toContain(`http://127.0.0.1:${port}`);
});

test("a state folder leads commands and their keys to no other host, and to no `up` that has stopped", async () => {
  const file = join(up.stateDir, "addresses.json");
  const noted = readFileSync(file, "utf8");
  writeFileSync(file, noted.replaceAll("127.0.0.1", "models.example.org"));
  for (const command of [["status"], ["chat", "scripted", "Hello"]]) {
    expect((await run(command)).err).not.toContain("models.example.org");
  }
  writeFileSync(file, noted.replaceAll(/:\d+/g, ":9"));
  expect((await doctor())[1]).toContain("Nothing listens at 127.0.0.1:9, where a `trunkline up`");
  writeFileSync(file, noted);
  expect(await up.terminate()).toBe(0);
  expect(() => readFileSync(file)).toThrow("ENOENT");
  expect((await run(["status"])).exitCode).not.toBe(0);
});
