import { expect, test } from "vitest";
import { valuesOf } from "../../../services/console/history.ts";
import { timeTicks, valueTicks } from "../../../services/console/plot-axes.ts";
import { msText, shortNumber } from "../../../services/console/quantity.ts";

test.each([
  [0, shortNumber, false, ["0", "1"]],
  [1, shortNumber, false, ["0", "1", "2"]],
  [10, shortNumber, false, ["0", "5", "10", "15"]],
  [41_000, shortNumber, false, ["0", "10K", "20K", "30K", "40K", "50K"]],
  [1.2, msText, true, ["0 ms", "1 ms", "2 ms"]],
  [900, msText, true, ["0 ms", "200 ms", "400 ms", "600 ms", "800 ms", "1.0 s"]],
  [70_000, msText, true, ["0 ms", "1 min", "2 min"]],
] as const)(
  "an axis up to %s has round numbers, each with a text of its own, and room above",
  (highest, text, isWait, shown) => {
    expect(valueTicks(highest, text, isWait).map(text)).toEqual(shown);
  },
);

test("every axis is above its highest value and has no text twice", () => {
  for (let highest = 0.1; highest < 1e7; highest *= 1.17) {
    for (const text of [shortNumber, msText]) {
      const ticks = valueTicks(highest, text, text === msText);
      expect(ticks.at(-1)).toBeGreaterThan(highest);
      expect(new Set(ticks.map(text)).size).toBe(ticks.length);
    }
  }
});

test("times stand at round places of the viewer's zone, and a day is named where it begins", () => {
  const from = new Date(2026, 0, 31, 21, 7).getTime();
  const texts = timeTicks(from, from + 6 * 3_600_000, 6).map(([, text]) => text);
  expect(texts).toEqual(["22:00", "23:00", "Feb 1", "01:00", "02:00", "03:00"]);
});

test("a step without a request is zero, or a gap for percentiles, and one before the site kept sums is unknown", () => {
  const sums = { requests: 2, failed: 0, failures: {}, prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0 };
  const step = { ...sums, first_token_ms: null, tokens_per_second: null, at: "2026-01-01T00:03:00.000Z" };
  const all = { total: step, steps: [step] };
  const history = {
    since: "2026-01-01T00:00:00.000Z",
    until: "2026-01-01T00:05:00.000Z",
    known_since: "2026-01-01T00:01:00.000Z",
    step_seconds: 60,
    all,
    data: [],
  };
  expect(valuesOf(history, all, ({ requests }) => requests)).toEqual([null, 0, 0, 2, 0]);
  expect(valuesOf(history, all, (each) => each.first_token_ms?.p50, null)).toEqual([null, null, null, null, null]);
});
