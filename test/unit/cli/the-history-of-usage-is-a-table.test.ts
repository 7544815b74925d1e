import { expect, test } from "vitest";
import { openHistory } from "#shared/history/history.ts";
import { Sums } from "#shared/history/sums.ts";
import { commandLine } from "./command-line.ts";

/** A store whose history has three requests of 2025-12-31: two at 21:00 and one at 22:00. */
async function withHistory() {
  const line = await commandLine();
  await line.inStore(async ({ state }) => {
    const history = openHistory(state);
    for (const [sequence, hour, model] of [
      [1, 21, "llama3.2"],
      [2, 21, "qwen3"],
      [3, 22, "llama3.2"],
    ] as const) {
      const sums = new Sums();
      const ended = {
        requests: 1,
        failed: 0,
        promptTokens: 1_000,
        completionTokens: 101,
        answered: 1,
        firstTokenMs: 150,
      };
      sums.add({ ...ended, durationMs: 2_150, model }, { machine: "attic", cachedTokens: 400, code: "ok" });
      await history.add({ minute: Date.UTC(2025, 11, 31, hour), sums, gateway: "g", sequence });
    }
  });
  return line;
}

const wordsOf = (out: string) =>
  out
    .trim()
    .split("\n")
    .map((row) => row.trim().split(/\s{2,}/));

test("usage history shows a row for each step in which a request ended", async () => {
  const { usage } = await withHistory();
  const { out } = await usage("history", "--step", "3600");
  expect(wordsOf(out)).toEqual([
    ["from", "requests", "failed", "tokens in", "cached", "tokens out", "p50", "p95", "tokens/s"],
    ["2025-12-31 21:00:00Z", "2", "0", "2,000", "800", "202", "0.15 s", "0.20 s", "52.5"],
    ["2025-12-31 22:00:00Z", "1", "0", "1,000", "400", "101", "0.15 s", "0.20 s", "52.5"],
  ]);
});

test("usage history by model shows the busiest model first, and the same as JSON", async () => {
  const { usage } = await withHistory();
  const { out } = await usage("history", "--by", "model");
  expect(wordsOf(out).map(([name, requests]) => [name, requests])).toEqual([
    ["model", "requests"],
    ["llama3.2", "2"],
    ["qwen3", "1"],
  ]);
  const { out: json } = await usage("history", "--model", "qwen3", "--json");
  expect(JSON.parse(json)).toMatchObject({ all: { total: { requests: 1, prompt_tokens: 1_000 } }, data: [] });
});

test("usage history says that minutes are kept for 48 hours, and names the step that works", async () => {
  const { usage } = await withHistory();
  await expect(usage("history", "--since", "7d", "--step", "60")).rejects.toThrow(/give whole hours, such as 3600/);
});
