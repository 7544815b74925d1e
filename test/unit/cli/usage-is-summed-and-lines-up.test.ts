import { expect, test } from "vitest";
import { noUsage, type UsageRow } from "#shared/usage/usage.ts";
import { type FiguresOfDay, meansOf, sumUsage, totalUsage } from "#shared/usage/sum-usage.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { systemClock } from "#shared/process/clock.ts";
import { SqliteLimitsBook } from "../../../services/gateway/limits/open-limits.ts";
import { commandLine } from "./command-line.ts";

function row(day: string, keyId: string, model: string | null, requests: number): UsageRow {
  return {
    ...noUsage,
    day,
    keyId,
    model,
    requests,
    failed: 1,
    answered: requests - 1,
    promptTokens: 1_000 * requests,
    completionTokens: 100 * requests,
    firstTokenMs: 250 * (requests - 1),
    durationMs: 2_000 * requests,
  };
}
const rows = [
  row("2025-12-31", "a", "llama3.2", 10),
  row("2025-12-31", "a", "qwen3", 1),
  row("2026-01-01", "a", "llama3.2", 20),
  row("2026-01-01", "b", "llama3.2", 400),
  row("2026-01-01", "b", null, 3),
];
/** Rows as the admin API shows them. */
function shown({
  keyId: key,
  promptTokens,
  completionTokens,
  firstTokenMs,
  durationMs,
  ...same
}: UsageRow): FiguresOfDay {
  const tokens = { prompt_tokens: promptTokens, completion_tokens: completionTokens };
  return { ...same, key, ...tokens, first_token_ms: firstTokenMs, duration_ms: durationMs };
}
const shownRows = rows.map(shown);
const partsOf = (by: Parameters<typeof sumUsage>[1]) =>
  sumUsage(shownRows, by).map(({ part, requests }) => ({ ...part, requests }));

test("rows that are not told apart are summed, and the largest comes first", () => {
  expect(partsOf(["key", "model"])).toEqual([
    { key: "b", model: "llama3.2", requests: 400 },
    { key: "a", model: "llama3.2", requests: 30 },
    { key: "b", model: null, requests: 3 },
    { key: "a", model: "qwen3", requests: 1 },
  ]);
  expect(partsOf(["key"])).toEqual([
    { key: "b", requests: 403 },
    { key: "a", requests: 31 },
  ]);
  expect(partsOf(["model"]).map(({ model }) => model)).toEqual(["llama3.2", null, "qwen3"]);
});

test("the largest row is the one with most tokens, in whichever number of requests", () => {
  const wordy = { ...row("2026-01-01", "wordy", "llama3.2", 2), completionTokens: 9_000_000 };
  expect(sumUsage([...shownRows, shown(wordy)], ["key"]).map(({ part }) => part.key)).toEqual(["wordy", "b", "a"]);
});

test("days come in their order", () => {
  expect(partsOf(["day"])).toEqual([
    { day: "2025-12-31", requests: 11 },
    { day: "2026-01-01", requests: 423 },
  ]);
  expect(partsOf(["key", "day"]).map(({ key, day }) => `${day} ${key}`)).toEqual([
    "2025-12-31 a",
    "2026-01-01 b",
    "2026-01-01 a",
  ]);
});

test("every count is summed, whichever way it is told apart", () => {
  const total = totalUsage(shownRows);
  expect(total).toEqual({
    requests: 434,
    failed: 5,
    answered: 429,
    prompt_tokens: 434_000,
    completion_tokens: 43_400,
    first_token_ms: 429 * 250,
    duration_ms: 434 * 2_000,
    cost: 0,
  });
  for (const by of [["key"], ["model"], ["day"], ["key", "model", "day"]] as const) {
    expect(totalUsage(sumUsage(shownRows, by))).toEqual(total);
  }
});

test("a mean is over the requests that had what it is the mean of, and none is not nothing", () => {
  expect(meansOf(totalUsage(shownRows))).toEqual({ firstTokenMs: 250, durationMs: 2_000 });
  expect(meansOf(totalUsage([]))).toEqual({ firstTokenMs: null, durationMs: null });
});

async function used() {
  const line = await commandLine();
  const { id } = await line.issue();
  const usage = [
    row("2025-12-20", id, "llama3.2", 7),
    row("2025-12-31", id, "llama3.2", 1_234),
    row("2026-01-01", id, "llama3.2", 1_000),
    row("2026-01-01", "goneGoneGone", null, 5),
  ];
  await line.inStore((store) => book(store, usage));
  return { ...line, id };
}

async function book({ state }: Pick<OpenedKeyStore, "state">, usage: readonly UsageRow[]): Promise<void> {
  if (state.kind !== "sqlite") throw new Error("the state is elsewhere");
  const books = new SqliteLimitsBook(state.database, { clock: systemClock });
  const none = {
    spent: [],
    ended: [],
    charges: [],
    renewed: [],
    growing: [],
    demands: [],
    running: [],
    over: [],
    requests: [],
  };
  await books.settle({ gateway: "gateway", sequence: 1, acknowledged: 0, ...none, usage });
}

test("usage is a table of the last week that lines up, with the names of keys and a total", async () => {
  const { usage, id, folder } = await used();
  const { out, err } = await usage();
  expect(out).toBe(
    `key           name   model     requests  failed  tokens in  tokens out  first token  duration
${id}  alice  llama3.2     2,234       2  2,234,000     223,400       0.25 s    2.00 s
goneGoneGone  -      -                5       1      5,000         500       0.25 s    2.00 s
total                             2,239       3  2,239,000     223,900       0.25 s    2.00 s
`,
  );
  expect(err).toBe(`Key store: the folder ${folder}\n`);
});

test("usage is told apart as asked, in that order of columns, for the days and the key that are asked for", async () => {
  const { usage, id } = await used();
  const linesOf = async (...args: string[]) =>
    (await usage(...args)).out
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((line) => line.split(/ {2,}/).slice(0, 3));
  expect(await linesOf("--by", "model,day", "--key", id)).toEqual([
    ["llama3.2", "2025-12-31", "1,234"],
    ["llama3.2", "2026-01-01", "1,000"],
    ["total", "2,234", "2"],
  ]);
  expect(await linesOf("--by", "model,day", "--key", "alice")).toHaveLength(3);
  expect(await linesOf("--by", "day", "--days", "1")).toEqual([
    ["2026-01-01", "1,005", "2"],
    ["total", "1,005", "2"],
  ]);
  expect(await linesOf("--by", "day", "--from", "2025-12-01", "--to", "2025-12-30")).toEqual([
    ["2025-12-20", "7", "1"],
    ["total", "7", "1"],
  ]);
  expect(await linesOf("--by", "day", "--to", "2025-12-20")).toHaveLength(2);
});

test("usage --json is one line in the words of the admin API", async () => {
  const { usage, id } = await used();
  const { out, err } = await usage("--by", "key", "--json");
  expect([err, out.split("\n").length]).toEqual(["", 2]);
  expect(JSON.parse(out)).toMatchObject({
    from: "2025-12-26",
    to: "2026-01-01",
    usage: [
      {
        key: id,
        name: "alice",
        requests: 2_234,
        failed: 2,
        prompt_tokens: 2_234_000,
        completion_tokens: 223_400,
        answered: 2_232,
        first_token_ms: 558_000,
        duration_ms: 4_468_000,
        mean_first_token_ms: 250,
        mean_duration_ms: 2_000,
      },
      { key: "goneGoneGone", name: null },
    ],
    total: { requests: 2_239 },
  });
});

test("usage by each part adds up to one total, with costs in a column whose points line up", async () => {
  const { usage, inStore } = await commandLine();
  const some = [
    { ...row("2026-01-01", "a", "llama3.2", 40), team: "research", machine: "attic", cost: 12_345 },
    {
      ...row("2026-01-01", "a", "llama3.2", 2),
      team: "research",
      machine: "cloud",
      kind: "external",
      cost: 500_000_000,
    },
    { ...row("2026-01-01", "b", "qwen3", 3), machine: "attic", endUser: "b:0f", cost: 1 },
    { ...row("2025-12-31", "b", null, 1), machine: null },
  ] as const;
  await inStore((store) => book(store, some));
  const expected = { requests: 46, failed: 4, prompt_tokens: 46_000, completion_tokens: 4_600, cost: 500_012_346 };
  const parts = ["key", "team", "person", "kind", "model", "day", "machine", "user", "machine,day", "user,key"];
  for (const by of parts) {
    const { usage: sums, total } = JSON.parse((await usage("--by", by, "--json")).out);
    expect([by, total]).toMatchObject([by, expected]);
    expect(totalUsage(sums)).toMatchObject(expected);
  }
  expect((await usage("--by", "machine")).out).toBe(
    `machine  requests  failed  tokens in  tokens out        cost
attic          43       2     43,000       4,300    0.012346
cloud           2       1      2,000         200  500.000000
-               1       1      1,000         100    0.000000
total          46       4     46,000       4,600  500.012346
`,
  );
});

test("usage by person has the names of people, and the beginning of the id of one who was removed", async () => {
  const { usage, inStore, issue } = await commandLine();
  await issue();
  const [anna, gone] = ["a".repeat(64), "b".repeat(64)];
  const of = { issuer: "https://id.example", subject: "1", claims: [], signedInAt: 0, createdAt: 0, changedAt: 0 };
  await inStore(async (store) => {
    const entry = { at: 0, action: "person_signed_in", name: anna, person: anna, by: "test" } as const;
    await store.people.write({ name: anna, version: 1, called: "Anna", ...of }, entry);
    await book(store, [
      { ...row("2026-01-01", "k", "llama3.2", 2), person: anna },
      { ...row("2026-01-01", "k", "llama3.2", 1), person: gone },
    ]);
  });
  const { out } = await usage("--by", "person");
  expect(out.split("\n").map((line) => line.split(/ {2,}/)[0])).toEqual([
    "person",
    "Anna",
    "bbbbbbbbbbbb",
    "total",
    "",
  ]);
  const { usage: sums } = JSON.parse((await usage("--by", "person", "--json")).out);
  expect(sums).toMatchObject([
    { person: anna, person_name: "Anna" },
    { person: gone, person_name: null },
  ]);
});

test("usage of one team or person leaves out that of others, also for a person who is forgotten", async () => {
  const { usage, inStore, issue } = await commandLine();
  await issue();
  const [anna, gone] = ["a".repeat(64), "b".repeat(64)];
  const of = { issuer: "https://id.example", subject: "1", claims: [], signedInAt: 0, createdAt: 0, changedAt: 0 };
  await inStore(async (store) => {
    const entry = { at: 0, action: "person_signed_in", name: anna, person: anna, by: "test" } as const;
    await store.people.write({ name: anna, version: 1, called: "Anna", email: "anna@example.org", ...of }, entry);
    await book(store, [
      { ...row("2026-01-01", "k", "llama3.2", 2), person: anna, team: "research" },
      { ...row("2026-01-01", "k", "llama3.2", 3), person: gone, team: "research" },
      row("2026-01-01", "k", "llama3.2", 100),
    ]);
  });
  const requestsOf = async (...filter: string[]) => JSON.parse((await usage(...filter, "--json")).out).total.requests;
  expect(await requestsOf("--team", "research")).toBe(5);
  expect(await requestsOf("--person", "anna@example.org", "--team", "research", "--by", "day")).toBe(2);
  expect(await requestsOf("--person", "aaaaaaaa")).toBe(2);
  expect(await requestsOf("--person", gone)).toBe(3);
});

test("without usage there is nothing on standard output, and in JSON there are no rows", async () => {
  const { usage } = await commandLine();
  expect(await usage()).toEqual({
    out: "",
    err: expect.stringContaining("Nothing was used from 2025-12-26 to 2026-01-01."),
  });
  const { out } = await usage("--json");
  expect(JSON.parse(out)).toMatchObject({ usage: [], total: { requests: 0, mean_duration_ms: null } });
});

test.each([
  [["--by", "keys"], "one or more of key, team, person, kind, model, day, machine, user"],
  [["--by", "machine,model"], "can combine machine with day alone"],
  [["--by", "user,machine"], "can combine user with key and day alone"],
  [["--by", "team,user"], "can combine user with key and day alone"],
  [["--by", "machine", "--key", "alice"], "rows of machines do not name the key; leave out 'key'"],
  [["--by", "user", "--team", "research"], "rows of users do not name the team; leave out 'team'"],
  [["--person", "bert@example.org"], "Nobody has the e-mail address bert@example.org"],
  [["--days", "0"], "from 1 to 400"],
  [["--days", "401"], "from 1 to 400"],
  [["--days", "3", "--from", "2026-01-01"], "'--days <count>' cannot be used with option '--from <day>'"],
  [["--from", "2026-02-30"], "must be a day, such as"],
  [["--from", "2026-01-02"], "2026-01-02, the first day, is after 2026-01-01, the last"],
  [["--from", "2020-01-01"], "more than 400 days"],
  [["--key", "nobody"], "No key has this id or this name"],
  [["keys"], "too many arguments"],
])("usage %j is refused with the reason", async (args, reason) => {
  const { usage } = await commandLine();
  await expect(usage(...args)).rejects.toThrow(reason);
});
