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
  expect((await keys("rotate", id, "--grace", "0d")).err).toContain("The old secret is not good any more.\nKey store");
});

test.each([
  ["external", "external", /^external +where a route says so$/m],
  ["store-responses", "store_responses", /^responses +stored, encrypted$/m],
])("a key has the term --%s only while it says so, and shows it", async (option, field, line) => {
  const { keys, json, issue } = await commandLine();
  const { id } = await issue("--rpm", "60");
  expect(await json("show", id)).not.toHaveProperty(field);
  expect(await json("change", id, `--${option}`)).toMatchObject({ outcome: "changed", [field]: true });
  expect(await json("change", id, "--rpm", "90")).toMatchObject({ outcome: "changed", [field]: true });
  expect((await keys("show", id)).out).toMatch(line);
  expect(await json("change", id, `--no-${option}`)).not.toHaveProperty(field);
  expect(await json("issue", "--name", "app", `--${option}`)).toMatchObject({ [field]: true });
});

test("a key keeps its answers on one machine only while it says so, and shows it", async () => {
  const { keys, json, issue } = await commandLine();
  const { id } = await issue("--no-continue");
  expect(await json("show", id)).toMatchObject({ continues: false });
  expect((await keys("change", id, "--rpm", "60")).out).toMatch(/^continues +no: its answers end with their machine$/m);
  expect(await json("change", id, "--continue")).not.toHaveProperty("continues");
  expect(await json("change", id, "--no-continue")).toMatchObject({ outcome: "changed", continues: false });
});

test("extend, disable, enable and revoke say what they did, and what was so before", async () => {
  const { keys, json, issue, clock } = await commandLine();
  const { id } = await issue("--ttl", "1h");
  const said: string[] = [];
  const say = async (...args: string[]) => void said.push((await keys(...args)).out.replace(id, "ID"));
  for (const command of ["disable", "disable", "enable", "enable", "disable"]) await say(command, id);
  clock.advance(dayMs);
  await say("enable", id);
  await say("extend", id, "--ttl", "3d");
  await expect(keys("extend", id, "--ttl", "1d")).rejects.toThrow(`The key ${id} is valid until 2026-01-05`);
  expect(await json("revoke", id)).toEqual({ id, outcome: "revoked" });
  expect(await json("revoke", id)).toEqual({ id, outcome: "already_revoked" });
  await say("revoke", id);
  expect(said.join("")).toMatch(
    new RegExp(
      [
        String.raw`ID \(alice\) is disabled`,
        String.raw`ID \(alice\) was disabled before`,
        String.raw`ID \(alice\) is enabled`,
        String.raw`ID \(alice\) was not disabled`,
        String.raw`ID \(alice\) is disabled`,
        String.raw`ID \(alice\) is enabled, but has expired: .*extend.*`,
        String.raw`ID \(alice\) expires 2026-01-05 00:00:00Z`,
        String.raw`ID \(alice\) was revoked before`,
      ].join("\n"),
    ),
  );
  for (const args of [["extend"], ["enable"], ["disable"], ["rotate"], ["change", "--name", "b"]]) {
    const refused = { exitCode: exitCodes.failed, message: expect.stringContaining(`The key ${id} was revoked`) };
    await expect(keys(...args, id)).rejects.toMatchObject(refused);
  }
});

test("a key may cause no loads once that is said, and as many as usual once its limit is taken away", async () => {
  const { keys, json, issue } = await commandLine();
  const { id } = await issue("--no-loads");
  expect(await json("show", id)).toMatchObject({ loads: 0 });
  expect((await keys("show", id)).out).toMatch(/^loads +never$/m);
  expect(await json("change", id, "--loads", "none")).not.toHaveProperty("loads");
  expect(await json("change", id, "--loads", "12")).toMatchObject({ loads: 12 });
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
test.each(onOneKey)(
  "trunkline keys %s of a key that does not exist says where it looked and what to run",
  async (line) => {
    const { keys, issue, folder } = await commandLine();
    await issue();
    await expect(keys(...line.split(" "), "000000000000")).rejects.toMatchObject({
      exitCode: exitCodes.failed,
      message: expect.stringContaining(`no key 000000000000 in the folder ${folder}: \`trunkline keys list\``),
    });
  },
);

test.each(onOneKey)("trunkline keys %s takes a whole key for its id, and never repeats one", async (line) => {
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

test("an app's key says where its requests name the end user, and the terms of each user stand only beside that", async () => {
  const { keys, json, issue } = await commandLine();
  const { id } = await issue("--end-users", "header", "--per-user-rpm", "20", "--per-user-budget", "50k/day");
  const terms = { end_users: "header", per_user_rpm: 20, per_user_budget: { tokens: 50_000, per: "day" } };
  expect(await json("show", id)).toMatchObject({ ...terms, rpm: null, budget: null });
  expect(await json("change", id, "--end-users", "field")).toMatchObject({ ...terms, end_users: "field" });
  await expect(keys("change", id, "--end-users", "none")).rejects.toThrow("'per_user_rpm' needs 'end_users'");
  await expect(issue("--per-user-budget", "50k/day")).rejects.toThrow("'per_user_budget' needs 'end_users'");
  await expect(issue("--end-users", "cookie")).rejects.toThrow(/--end-users.* must be one of header, field/);
  const gone = await json("change", id, "--end-users", "none", "--per-user-rpm", "none", "--per-user-budget", "none");
  expect(gone).not.toMatchObject({ end_users: expect.anything() });
});
