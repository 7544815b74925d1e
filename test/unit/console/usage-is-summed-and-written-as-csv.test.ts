import { expect, test } from "vitest";
import { csvOf, sumBy, sumOf, type ShownUsageRow } from "../../../services/console/usage-sums.ts";

const row = (given: Partial<ShownUsageRow>): ShownUsageRow => ({
  day: "2026-11-27",
  key: "0aB1cD2eF3gH",
  model: "llama3.2",
  requests: 1,
  failed: 0,
  prompt_tokens: 10,
  completion_tokens: 5,
  answered: 1,
  first_token_ms: 100,
  duration_ms: 300,
  ...given,
});

test("sums by model have the largest first, and days stand in order", () => {
  const rows = [row({ day: "2026-11-28", model: "small" }), row({ model: "large", completion_tokens: 500 }), row({})];
  expect(sumBy(rows, "model").map(({ of }) => of)).toEqual(["large", "llama3.2", "small"]);
  expect(sumBy(rows, "day").map(({ of, requests }) => [of, requests])).toEqual([
    ["2026-11-27", 2],
    ["2026-11-28", 1],
  ]);
});

test("the mean wait for a first token counts only requests that had one", () => {
  const rows = [
    row({}),
    row({ answered: 3, first_token_ms: 900, requests: 5 }),
    row({ answered: 0, first_token_ms: 0 }),
  ];
  expect(sumOf("all", rows).firstTokenMs).toBe(250);
  expect(sumOf("all", [row({ answered: 0, first_token_ms: 0 })]).firstTokenMs).toBeNull();
});

test("the name of a model or of an end user is no formula and breaks no row of the CSV", () => {
  const [, formula, quoted] = csvOf([row({ model: "=1+1" }), row({ model: 'a,"b"\nc' })]).split(/\r\n/);
  expect(formula).toContain(",'=1+1,");
  expect(quoted).toContain(',"a,""b""\nc",');
  expect(csvOf([row({ user: "=1+1" })], "user")).toMatch(/,user\r\n.*,'=1\+1\r\n$/);
});

test("the CSV has the cost as an amount, also in rows of a gateway that tells none", () => {
  const lines = csvOf([row({ cost: 12_345, team: "research", kind: "external" }), row({})]).split(/\r\n/);
  expect(lines.slice(0, 3)).toEqual([
    expect.stringMatching(/,cost,team,person,kind$/),
    expect.stringMatching(/,0\.012345,research,,external$/),
    expect.stringMatching(/,0\.00,,,$/),
  ]);
});
