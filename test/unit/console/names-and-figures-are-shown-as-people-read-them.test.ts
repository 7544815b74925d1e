import { expect, test } from "vitest";
import { grow, noAnswer } from "../../../services/console/chat-answer.ts";
import { missingModels, rangeText } from "../../../services/console/model-rows.ts";
import {
  bytesText,
  daysAgo,
  endingText,
  msText,
  shortNumber,
  sizeText,
  spanText,
  windowText,
} from "../../../services/console/quantity.ts";
import { actionWords, detailWords } from "../../../services/console/trail-words.ts";

test("the operator made a join line, and the machine was paired by it", () => {
  expect(actionWords.machine_paired).toBe("made a join line");
  expect(actionWords.machine_joined).toBe("was paired by its join line");
});

test("waits, sizes and windows have the unit that fits", () => {
  expect([0.4, 999, 1_400, 12_000, 3_600_000].map(msText)).toEqual(["0 ms", "999 ms", "1.4 s", "12 s", "1 h"]);
  expect([0, 59_000, 3_599_000, 90_000_000].map(spanText)).toEqual(["0 s", "59 s", "59 min", "1 d"]);
  expect([0, 640, 18_600].map(sizeText)).toEqual(["–", "640 MB", "18.6 GB"]);
  expect(bytesText(4_100_000_000)).toBe("4.1 GB");
  expect([131_072, 4_096, 1_000].map(windowText)).toEqual(["128K", "4K", "1,000"]);
  expect([9_999, 12_345, 3_400_000].map(shortNumber)).toEqual(["9,999", "12.3K", "3.4M"]);
  expect(rangeText([4_096, 4_096], Number, windowText)).toBe("4K");
  expect(rangeText([8_192, 4_096], Number, windowText)).toBe("4K to 8K");
});

test("a day is told by its distance from today in UTC, and running answers by their number", () => {
  const nowMs = Date.parse("2026-11-29T00:30:00Z");
  expect(["2026-11-29", "2026-11-28", "2026-11-01"].map((day) => daysAgo(day, nowMs))).toEqual([
    "today",
    "yesterday",
    "28 days ago",
  ]);
  expect([0, 1, 2, undefined].map(endingText)).toEqual([
    "No running answer ends.",
    "1 running answer ends.",
    "2 running answers end.",
    "Running answers end.",
  ]);
});

test("the detail of a change is one line, and a long one is cut", () => {
  expect(detailWords({ ttl: 5, reason: "new fans" })).toBe("ttl 5, reason new fans");
  expect(detailWords(null)).toBe("");
  expect(detailWords({ text: "x".repeat(500) })).toHaveLength(160);
});

test("an answer grows by its chunks: text, thinking, and calls in pieces", () => {
  const chunks = [
    { choices: [{ delta: { reasoning_content: "hm" } }] },
    { choices: [{ delta: { content: "It is " } }] },
    {
      choices: [
        {
          delta: { content: "sunny.", tool_calls: [{ index: 0, function: { name: "weather", arguments: '{"at":' } }] },
        },
      ],
    },
    {
      choices: [
        { delta: { tool_calls: [{ index: 0, function: { arguments: '"Oslo"}' } }] }, finish_reason: "tool_calls" },
      ],
    },
    { choices: [] },
  ];
  expect(chunks.reduce(grow, noAnswer)).toEqual({
    text: "It is sunny.",
    thinking: "hm",
    calls: [{ name: "weather", arguments: '{"at":"Oslo"}' }],
    finish: "tool_calls",
  });
});

test("names that were asked for in vain are counted once each, with their keys, and leave when they are there", () => {
  const asked = (model: string | null, key: string, at: string) => ({ model, key, at });
  const requests = [
    asked("gpt-5", "b", "t3"),
    asked("phi4", "a", "t2"),
    asked("gpt-5", "a", "t1"),
    asked(null, "a", "t0"),
  ];
  expect(missingModels(requests, (name) => name === "phi4")).toEqual([
    { name: "gpt-5", requests: 2, lastAt: "t3", keys: ["b", "a"] },
  ]);
});
