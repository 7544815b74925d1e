import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { exitCodes } from "#shared/process/start-failure.ts";
import { keysCommand } from "../../../services/cli/keys.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

let folder: string;
let clock: TurnableClock;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "trunkline-cli-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  clock = new TurnableClock({ wallMs: Date.UTC(2026, 0, 1) });
});

/** What `trunkline keys …` says on standard output and standard error. */
async function keys(...args: string[]): Promise<{ out: string; err: string }> {
  const said = { out: "", err: "" };
  const command = keysCommand({
    environment: { TRUNKLINE_STATE_DIR: folder },
    stdout: { write: (text) => (said.out += text) },
    stderr: { write: (text) => (said.err += text) },
    clock,
  });
  await command.parseAsync(args, { from: "user" });
  return said;
}
async function issue(...args: string[]): Promise<Record<string, unknown>> {
  return JSON.parse((await keys("issue", "--json", ...args)).out);
}

test("issue --json prints the key and what it is good for, on one line, and says elsewhere that it is shown once", async () => {
  const { out, err } = await keys("issue", "--name", "ci", "--scopes", "llama3, qwen*", "--ttl", "12h", "--json");
  expect(out.split("\n")).toHaveLength(2);
  expect(JSON.parse(out)).toEqual({
    id: expect.stringMatching(/^[0-9A-Za-z]{12}$/),
    key: expect.stringMatching(/^trunkline_/),
    name: "ci",
    scopes: ["llama3", "qwen*"],
    expires_at: "2026-01-01T12:00:00.000Z",
  });
  expect(err).toMatch(/cannot be shown again/);
});

test("a key is for every model and 90 days unless said otherwise", async () => {
  expect(await issue("--name", "alice")).toMatchObject({ scopes: ["*"], expires_at: "2026-04-01T00:00:00.000Z" });
});

test("list shows the state of every key and no secret", async () => {
  const issued: Record<string, unknown>[] = [];
  for (const args of [["valid"], ["expired", "--ttl", "1s"], ["revoked", "--scopes", "a,b"]]) {
    issued.push(await issue("--name", ...args));
    clock.advance(1);
  }
  await keys("revoke", String(issued[2]?.["id"]));
  clock.advance(1_000);
  const { out } = await keys("list");
  const lines = out.trim().split("\n");
  expect(lines.map((line) => line.split(/ {2,}/).slice(1, 4))).toEqual([
    ["name", "scopes", "state"],
    ["valid", "*", "valid"],
    ["expired", "*", "expired"],
    ["revoked", "a,b", "revoked"],
  ]);
  const columns = lines.map((line) => line.search(/valid|expired|revoked|name/));
  expect(new Set(columns).size).toBe(1);
  const json = (await keys("list", "--json")).out;
  expect(JSON.parse(json)).toMatchObject([{ state: "valid" }, { state: "expired" }, { state: "revoked" }]);
  for (const { key } of issued) expect(out + json).not.toContain(String(key));
});

test("an empty list says how to make a key, and prints an empty list as JSON", async () => {
  expect(await keys("list")).toEqual({ out: "", err: expect.stringContaining("keys issue") });
  expect((await keys("list", "--json")).out).toBe("[]\n");
});

test("revoke says whether it did, and refuses what is no id without repeating it", async () => {
  const { id, key } = await issue("--name", "alice");
  expect(JSON.parse((await keys("revoke", String(id), "--json")).out)).toEqual({ id, outcome: "revoked" });
  expect((await keys("revoke", String(id))).out).toBe(`${String(id)} was revoked before\n`);
  await expect(keys("revoke", "000000000000")).rejects.toMatchObject({ exitCode: exitCodes.failed });
  const refusal: unknown = await keys("revoke", String(key)).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ exitCode: exitCodes.usage });
  expect(String(refusal)).not.toContain(String(key));
});

test.each([
  [["issue"], "--name"],
  [["issue", "--name", ""], "must not be empty"],
  [["issue", "--name", "a\nb"], "one line"],
  [["issue", "--name", "a", "--ttl", "1e20"], "such as 90d"],
  [["issue", "--name", "a", "--scopes", "a,,b"], "must not be empty"],
])("%j is refused, and nothing is issued", async (args, reason) => {
  await expect(keys(...args)).rejects.toThrow(reason);
  expect((await keys("list", "--json")).out).toBe("[]\n");
});

test.each([[["--help"]], [["issue", "--help"]], [["revoke", "--help"]]])("%j explains itself", async (args) => {
  await expect(keys(...args)).rejects.toMatchObject({ exitCode: 0 });
});
