import { expect, test } from "vitest";
import { type EndedSums, seriesMax, quantile, Row, Sums, waitBounds } from "#shared/history/sums.ts";
import { readHistory } from "#shared/history/read-history.ts";

const answered = { requests: 1, failed: 0, answered: 1, firstTokenMs: 150, durationMs: 2_150, completionTokens: 101 };

function ended(more: Partial<EndedSums> = {}): EndedSums {
  return { ...answered, promptTokens: 50, model: "llama3", ...more };
}

function sumsOf(...requests: readonly EndedSums[]): Sums {
  const sums = new Sums();
  for (const each of requests)
    sums.add(each, { machine: "attic", cachedTokens: 10, code: each.failed ? "agent_offline" : "ok" });
  return sums;
}

test("the sums of two gateways are those of one that had all requests", () => {
  const [one, other] = [ended(), ended({ failed: 1, answered: 0, model: "qwen3" })];
  const merged = sumsOf(one);
  merged.merge(sumsOf(other, one));
  expect(merged.rows).toEqual(sumsOf(one, other, one).rows);
  expect([...merged.rows.keys()].toSorted()).toEqual(["", "machine:attic", "model:llama3", "model:qwen3"]);
  expect(merged.rowOf("").failures).toEqual(new Map([["agent_offline", 1]]));
});

test("a request that resumes an answer counts its tokens and no second request, wait or rate", () => {
  const { counts } = sumsOf(ended({ requests: 0, answered: 0, firstTokenMs: 0 })).rowOf("");
  expect(counts.slice(0, 4)).toEqual([0, 50, 10, 101]);
  expect(counts.slice(4).every((count) => count === 0)).toBe(true);
});

test("models beyond the first 64 are added up together, however many a client makes up", () => {
  const sums = sumsOf(...Array.from({ length: 1_000 }, (_, index) => ended({ model: `m${index}` })));
  expect(sums.rows.size).toBe(seriesMax + 3);
  expect(sums.rowOf("model").counts[0]).toBe(1_000 - seriesMax);
});

test.each([
  ["nothing", [], 0.5, null],
  ["one value between 25 and 50", [0, 0, 1], 0.5, 37.5],
  ["the 95th of 100 even values up to 10", [100], 0.95, 9.5],
  ["two thirds below 10, at p95", [2, 1], 0.95, 22.75],
  ["values beyond the last bound", [...Array<number>(16).fill(0), 3], 0.95, 300_000],
])("a quantile of %s", (_, counts, share, value) => {
  const found = quantile(counts, waitBounds, share);
  expect(found === null ? null : Math.round(found * 100) / 100).toBe(value);
});

test("a range is read in its steps: with percentiles, the busiest models by name, and the others as one", async () => {
  const minute = sumsOf(ended(), ended(), ended({ model: "qwen3" }), ended({ model: "phi4" }));
  const later = sumsOf(ended({ firstTokenMs: 900 }));
  const history = {
    visit: async (_: object, take: (at: number, sums: Sums) => void) => {
      for (const at of [0, 60_000]) take(at, minute);
      take(240_000, later);
    },
    since: async () => 0,
  };
  const asked = { sinceMs: 30_000, untilMs: 300_000, stepMs: 120_000, by: "model", of: "", limit: 1 } as const;
  const { all, data, since } = await readHistory(history, asked);
  expect(since).toBe("1970-01-01T00:00:00.000Z");
  expect(all.steps.map(({ at, requests }) => [at.slice(14, 19), requests])).toEqual([
    ["00:00", 8],
    ["04:00", 1],
  ]);
  expect(all.total).toMatchObject({
    requests: 9,
    failed: 0,
    prompt_tokens: 450,
    cached_tokens: 90,
    completion_tokens: 909,
  });
  expect(all.steps[0]?.first_token_ms).toEqual({ p50: 150, p95: 195 });
  expect(all.steps[0]?.tokens_per_second?.p50).toBeGreaterThan(45);
  expect(data.map(({ of, total }) => [of, total.requests])).toEqual([
    ["llama3", 5],
    [null, 4],
  ]);
});

test("counts that a newer gateway has appended are kept", () => {
  const row = new Row([...new Row().counts, 7]);
  row.merge(new Row());
  expect(row.counts.at(-1)).toBe(7);
});
