import { expect, test } from "vitest";
import { limitHeaders } from "../../../../services/gateway/requests/limit-responses.ts";
import { shortDuration } from "../../../../services/gateway/requests/limit-responses.ts";

test("the headers of an answer say how a key stands with both limits by the minute", () => {
  const requests = { limit: 10, remaining: 7, resetMs: 18_000 };
  const tokens = { limit: 1_000_000, remaining: 0, resetMs: 360_000 };
  expect(limitHeaders({ requests, tokens })).toEqual({
    "x-ratelimit-limit-requests": "10",
    "x-ratelimit-remaining-requests": "7",
    "x-ratelimit-reset-requests": "18s",
    "x-ratelimit-limit-tokens": "1000000",
    "x-ratelimit-remaining-tokens": "0",
    "x-ratelimit-reset-tokens": "6m0s",
  });
});

test("the headers of an answer say nothing of a limit that a key does not have", () => {
  expect(limitHeaders({})).toEqual({});
  const tokens = { limit: 10, remaining: 10, resetMs: 0 };
  expect(Object.keys(limitHeaders({ tokens }))).toEqual([
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
  ]);
});

test.each([
  [0, "0s"],
  [0.2, "1ms"],
  [20, "20ms"],
  [999, "999ms"],
  [999.5, "1s"],
  [1_000, "1s"],
  [1_001, "2s"],
  [59_001, "1m0s"],
  [90_000, "1m30s"],
  [360_000, "6m0s"],
  [3_600_000, "1h0m0s"],
  [3_725_000, "1h2m5s"],
])("the headers of an answer %d ms are written as %s", (ms, text) => {
  expect(shortDuration(ms)).toBe(text);
});
