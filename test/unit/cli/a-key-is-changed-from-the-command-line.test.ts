import { expect, test } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { commandLine } from "./command-line.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

test("rotate shows another secret, and the one before is good until the grace is over", async () => {
  const { keys, json, issue, verdictOf, clock } = await commandLine();
  const { id, key: old } = await issue("--rpm", "60");
  const rotated = await json("rotate", id, "--grace", "2h");
  expect(rotated).toMatchObject({ id, rpm: 60, old_secrets_valid_until: ["2026-01-01T02:00:00.000Z"] });
  const { key } = rotated as { key: string };
  expect([await verdictOf(old), await verdictOf(key)]).toEqual(["valid", "valid"]);
  expect((await keys("show", id)).out).toMatch(/^old secret +good until 2026-01-01 02:00:00Z$/m);
  clock.advance(2 * hourMs);
  expect([await verdictOf(old), await verdictOf(key)]).toEqual(["replaced", "valid"]);
  expect((await keys("show", id)).out).not.toContain("old secret");
});

test("rotate says until when the old secret is good: a day unless said otherwise, and no longer than the key", async () => {
  const { keys, issue } = await commandLine();
  const { id } = await issue("--ttl", "2d");
  expect((await keys("rotate", id)).err).toContain("The old secret stays good until 2026-01-02 00:00:00Z.");
  const { out, err } = await keys("rotate", id, "--grace", "9d");
  expect(err).toContain("stays good until 2026-01-03 00:00:00Z.");
  expect(out).toMatch(/^old secret +good until 2026-01-03 00:00:00Z$/m);
});

test.each(["0s", "0d"])("a grace of %s ends the old secret at once", async (grace) => {
  const { keys, issue, verdictOf } = await commandLine();
  const { id, key: old } = await issue();
  const { out, err } = await keys("rotate", id, "--grace", grace);
  expect(err).toContain("The old secret is not good any more.\nKey store");
  expect([await verdictOf(old), await verdictOf(/trunkline_\S+/.exec(out)?.[0] ?? "")]).toEqual(["replaced", "valid"]);
});

test("a key is led elsewhere only once it is issued or changed so, and shows it", async () => {
  const { keys, json, issue } = await commandLine();
  const { id } = await issue("--scopes", "*");
  expect(await json("show", id)).not.toHaveProperty("external");
  expect(await json("change", id, "--external")).toMatchObject({ outcome: "changed", external: true });
  expect(await json("change", id, "--rpm", "60")).toMatchObject({ outcome: "changed", external: true });
  expect((await keys("show", id)).out).toMatch(/^external +where a route says so$/m);
  expect((await keys("change", id, "--no-external")).out).not.toContain("external");
  expect(await json("issue", "--name", "far", "--external")).toMatchObject({ external: true });
  expect((await keys("list")).out).toMatch(/^id +name +scopes +external /m);
  expect((await keys("log")).out).toMatch(/changed .*external/);
});

test("a key keeps its answers on one machine only while it says so, and shows it", async () => {
  const { keys, json, issue } = await commandLine();
  const { id } = await issue("--no-continue");
  expect(await json("show", id)).toMatchObject({ continues: false });
  expect((await keys("change", id, "--rpm", "60")).out).toMatch(/^continues +no: its answers end with their machine$/m);
  expect(await json("change", id, "--continue")).not.toHaveProperty("continues");
  expect(await json("change", id, "--no-continue")).toMatchObject({ outcome: "changed", continues: false });
});

test("a key has its responses stored only while it says so, and shows it", async () => {
  const { keys, json, issue } = await commandLine();
  const { id } = await issue("--rpm", "60");
  expect(await json("show", id)).not.toHaveProperty("store_responses");
  expect(await json("change", id, "--store-responses")).toMatchObject({ outcome: "changed", store_responses: true });
  expect(await json("change", id, "--rpm", "90")).toMatchObject({ outcome: "changed", store_responses: true });
  expect((await keys("show", id)).out).toMatch(/^responses +stored, encrypted$/m);
  expect(await json("change", id, "--no-store-responses")).not.toHaveProperty("store_responses");
  expect(await json("issue", "--name", "app", "--store-responses")).toMatchObject({ store_responses: true });
});

test("extend counts from now on, and an expired key works again", async () => {
  const { keys, json, issue, verdictOf, clock } = await commandLine();
  const { id, key } = await issue("--ttl", "1h");
  clock.advance(dayMs);
  expect(await verdictOf(key)).toBe("expired");
  expect(await json("extend", id, "--ttl", "2d")).toMatchObject({
    outcome: "changed",
    state: "valid",
    expires_at: "2026-01-04T00:00:00.000Z",
  });
  expect(await verdictOf(key)).toBe("valid");
  expect((await keys("extend", id, "--ttl", "3d")).out).toBe(`${id} (alice) expires 2026-01-05 00:00:00Z\n`);
  await expect(keys("extend", id, "--ttl", "1d")).rejects.toThrow(`The key ${id} is valid until 2026-01-05`);
});

test("a key may cause no loads once that is said, and as many as usual once its limit is taken away", async () => {
  const { keys, json, issue } = await commandLine();
  const { id } = await issue("--no-loads");
  expect(await json("show", id)).toMatchObject({ loads: 0 });
  expect((await keys("show", id)).out).toMatch(/^loads +never$/m);
  expect(await json("change", id, "--loads", "none")).not.toHaveProperty("loads");
  expect(await json("change", id, "--loads", "12")).toMatchObject({ loads: 12 });
});

test("a disabled key is refused until it is enabled, and doing either twice changes nothing", async () => {
  const { keys, json, issue, verdictOf } = await commandLine();
  const { id, key } = await issue();
  expect(await json("disable", id)).toMatchObject({ id, state: "disabled", outcome: "changed" });
  expect(await json("disable", id)).toMatchObject({ state: "disabled", outcome: "unchanged" });
  expect(await verdictOf(key)).toBe("disabled");
  expect((await keys("disable", id)).out).toBe(`${id} (alice) was disabled before\n`);
  expect((await keys("enable", id)).out).toBe(`${id} (alice) is enabled\n`);
  expect(await json("enable", id)).toMatchObject({ state: "valid", disabled_at: null, outcome: "unchanged" });
  expect(await verdictOf(key)).toBe("valid");
});

test("enabling a key that expired meanwhile says that this alone does not help", async () => {
  const { keys, issue, clock } = await commandLine();
  const { id } = await issue("--ttl", "1h");
  await keys("disable", id);
  clock.advance(dayMs);
  expect((await keys("enable", id)).out).toMatch(/is enabled, but has expired: .*extend/);
});

test("revoke says whether it did, and nothing brings the key back", async () => {
  const { keys, json, issue, verdictOf } = await commandLine();
  const { id, key } = await issue();
  expect(await json("revoke", id)).toEqual({ id, outcome: "revoked" });
  expect(await json("revoke", id)).toEqual({ id, outcome: "already_revoked" });
  expect((await keys("revoke", id)).out).toBe(`${id} (alice) was revoked before\n`);
  expect(await verdictOf(key)).toBe("invalid");
  for (const args of [["extend"], ["enable"], ["disable"], ["rotate"], ["change", "--name", "b"]]) {
    const refused = { exitCode: exitCodes.failed, message: expect.stringContaining(`The key ${id} was revoked`) };
    await expect(keys(...args, id)).rejects.toMatchObject(refused);
  }
});

test("change takes what is named and leaves the rest; none takes a limit away", async () => {
  const { keys, json, issue } = await commandLine();
  const limits = ["--rpm", "60", "--tpm", "100k", "--concurrency", "4", "--budget", "2M/month"];
  const { id } = await issue("--machines", "attic", ...limits);
  const named = ["--name", "bob", "--scopes", "llama3.2", "--machines", "cellar,loft", "--rpm", "120"];
  expect(await json("change", id, ...named)).toMatchObject({
    outcome: "changed",
    name: "bob",
    scopes: ["llama3.2"],
    machines: ["cellar", "loft"],
    rpm: 120,
    tpm: 100_000,
    concurrency: 4,
    budget: { tokens: 2_000_000, per: "month" },
  });
  expect(await json("change", id, "--tpm", "none")).toMatchObject({ rpm: 120, tpm: null, concurrency: 4 });
  const free = ["--machines", "any", "--rpm", "none", "--concurrency", "none", "--budget", "none"];
  const left = { outcome: "changed", name: "bob", machines: null, rpm: null, concurrency: null, budget: null };
  expect(await json("change", id, ...free)).toMatchObject(left);
  expect(await json("change", id, "--rpm", "none")).toMatchObject({ ...left, outcome: "unchanged" });
  const { out, err } = await keys("change", id, "--name", "bob");
  expect([out, err]).toEqual([expect.stringMatching(/^name +bob$/m), expect.stringContaining("Nothing was changed")]);
});

test("change without anything to change says what there is", async () => {
  const { keys, issue } = await commandLine();
  const { id } = await issue();
  await expect(keys("change", id, "--json")).rejects.toThrow(/say what to change: --name, .*--budget/);
});

const onOneKey = ["show", "rotate", "extend", "disable", "enable", "revoke", "change --name b"];
test.each(onOneKey)("keys %s of a key that does not exist says where it looked and what to run", async (line) => {
  const { keys, issue, folder } = await commandLine();
  await issue();
  await expect(keys(...line.split(" "), "000000000000")).rejects.toMatchObject({
    exitCode: exitCodes.failed,
    message: expect.stringContaining(`no key 000000000000 in the folder ${folder}: \`trunkline keys list\``),
  });
});

test.each(onOneKey)("keys %s takes a whole key for its id, and never repeats one", async (line) => {
  const { keys, issue } = await commandLine();
  const { id, key } = await issue("--ttl", "1h");
  const [, , secret = ""] = key.split("_");
  const { out, err } = await keys(...line.split(" "), key);
  expect(out).toContain(id);
  expect(out + err).not.toContain(secret);

  for (const wrong of [[`${key}x`], [key.slice(0, -1)], [key.replace("trunkline_", "")], [key, key], [id, key]]) {
    const refused: unknown = await keys(...line.split(" "), ...wrong).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Error);
    const { message, said } = refused as Error & { said: { out: string; err: string } };
    if (wrong.length === 1) expect(message).toContain("12 letters and digits");
    expect(said.out + said.err).not.toContain(secret.slice(0, 20));
    if (wrong.length === 1) expect(message).not.toContain(secret.slice(0, 20));
  }
});
