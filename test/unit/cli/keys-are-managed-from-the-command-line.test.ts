import { expect, test } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { commandLine } from "./command-line.ts";

test("issue --json prints the key and what it is good for, on one line, and says elsewhere that it is shown once", async () => {
  const { keys } = await commandLine();
  const { out, err } = await keys("issue", "--name", "ci", "--scopes", "llama3, qwen*", "--ttl", "12h", "--json");
  expect(out.split("\n")).toHaveLength(2);
  expect(JSON.parse(out)).toEqual({
    id: expect.stringMatching(/^[0-9A-Za-z]{12}$/),
    key: expect.stringMatching(/^trunkline_(?!admin)/),
    name: "ci",
    kind: "model",
    scopes: ["llama3", "qwen*"],
    machines: null,
    rpm: null,
    tpm: null,
    concurrency: null,
    budget: null,
    state: "valid",
    created_at: "2026-01-01T00:00:00.000Z",
    expires_at: "2026-01-01T12:00:00.000Z",
    disabled_at: null,
    revoked_at: null,
    old_secrets_valid_until: [],
  });
  expect(err).toMatch(/cannot be shown again/);
});

test("issue and rotate print the key alone with --quiet, for a variable of a shell", async () => {
  const { keys, json, verdictOf } = await commandLine();
  const issued = await keys("issue", "--name", "ci", "--quiet");
  expect(issued).toEqual({ out: expect.stringMatching(/^trunkline_\w+\n$/), err: "" });
  const [{ id }] = (await json("list")) as [{ id: string }];
  const rotated = await keys("rotate", id, "--grace", "0s", "--quiet");
  expect(rotated).toEqual({ out: expect.stringMatching(/^trunkline_\w+\n$/), err: "" });
  expect(await verdictOf(issued.out.trim())).toBe("replaced");
  expect(await verdictOf(rotated.out.trim())).toBe("valid");
});

test("whatever a key is issued with is shown by show and by list", async () => {
  const { keys, json, issue } = await commandLine();
  const terms = ["--scopes", "llama3.2,qwen*", "--machines", "attic, cellar", "--ttl", "30d"];
  const limits = [
    "--rpm",
    "60",
    "--tpm",
    "100k",
    "--concurrency",
    "4",
    "--budget",
    "2M/month",
    "--loads",
    "2",
    "--spend",
    "0.5/day",
  ];
  const { key, ...issued } = await issue(...terms, ...limits);
  const asked = { scopes: ["llama3.2", "qwen*"], machines: ["attic", "cellar"], rpm: 60, tpm: 100_000, concurrency: 4 };
  expect(issued).toMatchObject({ ...asked, loads: 2, budget: { tokens: 2_000_000, per: "month" } });
  expect(issued).toMatchObject({ spend: { millionths: 500_000, per: "day" } });
  expect(await json("show", issued.id)).toEqual(issued);
  expect(await json("list")).toEqual([issued]);

  const { out: shown } = await keys("show", issued.id);
  for (const line of [
    /^name +alice$/m,
    /^scopes +llama3.2, qwen\*$/m,
    /^machines +attic, cellar$/m,
    /^rpm +60$/m,
    /^tpm +100k$/m,
    /^concurrency +4$/m,
    /^budget +2M\/month$/m,
    /^spend +0.50\/day$/m,
    /^loads +2 a minute$/m,
    /^expires +2026-01-31 00:00:00Z \(in 30 days\)$/m,
  ])
    expect(shown).toMatch(line);
  const { out: listed } = await keys("list");
  expect(listed).toMatch(/llama3\.2, qwen\* +attic, cellar +60 rpm, 100k tpm, 4 at once, 2M\/mon.* +valid +2026-01-31/);
  expect(shown + listed).not.toContain(key);
});

test("an admin key is one of its own kind, for 90 days at most and without anything that is about models", async () => {
  const { keys, issue } = await commandLine();
  const { id, key } = await issue("--admin");
  expect(key).toMatch(/^trunkline_admin_/);
  expect((await keys("show", id)).out).toMatch(/^kind +admin/m);
  expect((await keys("list")).out).toMatch(new RegExp(`kind.*\n${id} +alice +admin`));
});

test("list shows the state of every key and no secret, and only keys in the states that are asked for", async () => {
  const { keys, json, clock } = await commandLine();
  const issued: { id: string; key: string }[] = [];
  for (const [name, ...args] of [["valid"], ["expired", "--ttl", "1s"], ["revoked", "--scopes", "a,b"], ["disabled"]]) {
    issued.push(JSON.parse((await keys("issue", "--name", String(name), ...args, "--json")).out));
    clock.advance(1);
  }
  await keys("revoke", String(issued[2]?.id));
  await keys("disable", String(issued[3]?.id));
  clock.advance(1_000);
  const { out } = await keys("list");
  const lines = out.trim().split("\n");
  expect(lines.map((line) => line.split(/ {2,}/).slice(1, 4))).toEqual([
    ["name", "scopes", "state"],
    ["valid", "*", "valid"],
    ["expired", "*", "expired"],
    ["revoked", "a, b", "revoked"],
    ["disabled", "*", "disabled"],
  ]);
  const columns = lines.map((line) => line.search(/valid|expired|revoked|disabled|name/));
  expect(new Set(columns).size).toBe(1);
  const inJson = (await keys("list", "--json")).out;
  expect(JSON.parse(inJson)).toMatchObject(["valid", "expired", "revoked", "disabled"].map((state) => ({ state })));
  for (const { key } of issued) expect(out + inJson).not.toContain(key.split("_")[2]);
  expect(await json("list", "--state", "disabled,valid")).toMatchObject([{ name: "valid" }, { name: "disabled" }]);
});

test("an empty list says how to make a key, and prints an empty list as JSON", async () => {
  const { keys } = await commandLine();
  expect(await keys("list")).toEqual({ out: "", err: expect.stringContaining("keys issue") });
  expect((await keys("list", "--json")).out).toBe("[]\n");
});

test("long lists of scopes are cut in the table and whole where one key is shown", async () => {
  const { keys, issue } = await commandLine();
  const scopes = Array.from({ length: 60 }, (_, at) => `model-${at}`);
  const { id } = await issue("--scopes", scopes.join(","));
  const { out } = await keys("list");
  expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThan(110);
  expect(out).toContain("…");
  expect((await keys("show", id)).out).toContain(scopes.join(", "));
});

test("a person is told last which store it was; a program is told nothing beside what it asked for", async () => {
  const { keys, issue, folder } = await commandLine();
  const { id } = await issue();
  const place = `Key store: the folder ${folder}\n`;
  for (const args of [["list"], ["show", id], ["log"], ["issue", "--name", "bob"], ["disable", id], ["revoke", id]])
    expect((await keys(...args)).err.endsWith(place), args.join(" ")).toBe(true);
  for (const args of [["list"], ["show", id], ["log"], ["revoke", id]])
    expect((await keys(...args, "--json")).err, args.join(" ")).toBe("");
});

test.each([
  [["issue"], "--name"],
  [["issue", "--name", "a\nb"], "one line"],
  [["issue", "--name", "a", "--ttl", "0s"], "longer than nothing"],
  [["issue", "--name", "a", "--scopes", "a,,b"], "must not be empty"],
  [["issue", "--name", "a", "--machines", "Attic"], "--machines"],
  [["issue", "--name", "a", "--rpm", "0"], "--rpm <count>' argument '0' is invalid. It must be a whole number"],
  [["issue", "--name", "a", "--tpm", "1.5k"], "--tpm"],
  [["issue", "--name", "a", "--budget", "500k"], "such as 500k/day or 2M/month"],
  [["issue", "--name", "a", "--budget", "2000000M/day"], "from 1 to 1000000M tokens"],
  [["issue", "--name", "a", "--spend", "500"], "such as 20/day or 500/month"],
  [["issue", "--name", "a", "--spend", "0.0000001/day"], "at most six decimals"],
  [["issue", "--name", "a", "--admin", "--ttl", "91d"], "--ttl of an admin key must be at most 90d"],
  [["issue", "--name", "a", "--admin", "--scopes", "*"], "'--admin' cannot be used with option '--scopes <patterns>'"],
  [["issue", "--name", "a", "--admin", "--budget", "1/day"], "--budget"],
  [["list", "--state", "valid,gone"], "one or more of valid, disabled, expired, revoked"],
  [["log", "--limit", "0"], "--limit"],
])("%j is refused, and nothing is issued", async (args, reason) => {
  const { keys } = await commandLine();
  await expect(keys(...args)).rejects.toThrow(reason);
  expect((await keys("list", "--json")).out).toBe("[]\n");
});

test("a store that is no store is told with the code for it", async () => {
  const { keys } = await commandLine();
  await expect(keys("show", "000000000000")).rejects.toMatchObject({ exitCode: exitCodes.unavailable });
});
