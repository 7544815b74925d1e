import { hostname, userInfo } from "node:os";
import { expect, test } from "vitest";
import { changeMachine } from "#shared/records/change-machine.ts";
import { commandLine } from "./command-line.ts";

const me = `cli ${userInfo().username}@${hostname()}`;

async function afterEverything() {
  const line = await commandLine();
  const { keys, issue, clock } = line;
  const { id, key } = await issue("--rpm", "60");
  const secrets = [key];
  const doneTo = [
    ["rotate", id, "--json"],
    ["extend", id, "--ttl", "180d"],
    ["disable", id],
    ["enable", id],
    ["change", id, "--name", "bob", "--rpm", "120", "--machines", "attic", "--budget", "2M/month"],
    ["revoke", id],
  ];
  for (const args of doneTo) {
    clock.advance(60_000);
    const { out } = await keys(...args);
    if (args[0] === "rotate") secrets.push((JSON.parse(out) as { key: string }).key);
  }
  return { ...line, id, secrets };
}

test("log tells who did what to which key and when, in the order in which it was done", async () => {
  const { keys, id } = await afterEverything();
  const [headings, ...lines] = (await keys("log")).out.trimEnd().split("\n");
  expect(headings?.split(/ {2,}/)).toEqual(["time", "who", "what", "key", "name", "detail"]);
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual(
    [
      ["00:00:00Z", "issued", "alice", "scopes *, rpm 60, expires 2026-04-01 00:00:00Z"],
      ["00:01:00Z", "rotated", "alice", "old secret valid until 2026-01-02 00:01:00Z"],
      ["00:02:00Z", "extended", "alice", "expires 2026-04-01 00:00:00Z → 2026-06-30 00:02:00Z"],
      ["00:03:00Z", "disabled", "alice"],
      ["00:04:00Z", "enabled", "alice"],
      ["00:05:00Z", "changed", "bob", "name alice → bob, machines none → attic, rpm 60 → 120, budget none → 2M/month"],
      ["00:06:00Z", "revoked", "bob"],
    ].map(([time, what, ...said]) => [`2026-01-01 ${time}`, me, what, id, ...said]),
  );
});

test("log --json is one line with all that the entries say", async () => {
  const { keys, json, id } = await afterEverything();
  expect((await keys("log", "--json")).out.split("\n")).toHaveLength(2);
  const [issued, ...others] = (await json("log")) as object[];
  const told = { by: me, action: "issued", key: id, detail: { rpm: 60 }, request: null };
  expect(issued).toMatchObject({ at: "2026-01-01T00:00:00.000Z", ...told });
  expect(others).toHaveLength(6);
});

test("log holds no secret and no digest of one", async () => {
  const { keys, id, secrets, inStore } = await afterEverything();
  const found = await inStore(async ({ keys: store }) => (await store.list()).find((record) => record.id === id));
  const digests = [found?.digest, ...(found?.replaced ?? []).map(({ digest }) => digest)];
  const said = (await keys("log")).out + (await keys("log", "--json")).out;
  const never = [...secrets.map((key) => key.split("_")[2]), ...digests];
  expect(never).toHaveLength(4);
  for (const text of never) {
    expect(text).toMatch(/^[0-9A-Za-z]{38,}$/);
    expect(said).not.toContain(text);
  }
});

test("log gives the latest entries, of all keys or of one, by its id or its name", async () => {
  const { json, issue, keys, id, secrets } = await afterEverything();
  const { id: other } = await issue("--name", "carol");
  expect(await json("log", "--key", "carol")).toMatchObject([{ action: "issued", key: other }]);
  expect(await json("log", "--limit", "2")).toMatchObject([{ action: "revoked" }, { action: "issued", key: other }]);
  expect(await json("log", "--limit", "1", "--key", id)).toMatchObject([{ action: "revoked", key: id }]);
  expect(await json("log", "--key", String(secrets[0]))).toHaveLength(7);
  expect(await keys("log", "--key", "000000000000")).toEqual({
    out: "",
    err: expect.stringContaining("Nothing is known of 000000000000."),
  });
});

test("log finds changes by their author, action, subject and day", async () => {
  const { json, machines, issue, clock, inStore } = await afterEverything();
  clock.advance(86_400_000);
  const { id } = await issue("--name", "ada");
  await machines("set", "attic", "--models", "llama*");
  await inStore(async ({ keys, ...store }) => {
    const actor = { by: `admin ${id}, session 1`, request: "r" };
    await changeMachine("attic", { action: "machine_cordoned", reason: "fans" }, { ...store, keys, actor });
  });
  expect(await json("log", "--by", "ADA")).toMatchObject([{ action: "machine_cordoned", machine: "attic" }]);
  expect(await json("log", "--about", "ATT")).toMatchObject([{ machine: "attic" }, { machine: "attic" }]);
  expect(await json("log", "--action", "issued", "--about", "bob")).toEqual([]);
  expect(await json("log", "--action", "issued")).toMatchObject([{ name: "alice" }, { name: "ada" }]);
  expect(await json("log", "--day", "2026-01-01", "--limit", "1")).toMatchObject([{ action: "revoked" }]);
  expect(await json("log", "--day", "2026-01-02")).toHaveLength(3);
});
