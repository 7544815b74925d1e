import { bookOf } from "../../../harness/book-of-a-test.ts";
import { expect, test } from "vitest";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { faultEntry } from "#shared/fault/fault.ts";
import { limitFault, limitHeaders, shortDuration } from "../../../../services/gateway/requests/limit-responses.ts";
import type { Allowance, Refusal } from "../../../../services/gateway/limits/limits.ts";

const allowance = (limit: number, remaining = 0): Allowance => ({ limit, remaining, resetMs: 60_000 });
const limits: KeyLimits = {
  requestsPerMinute: 10,
  tokensPerMinute: 5_000,
  concurrency: 2,
  budget: { tokens: 1_000_000, per: "month" },
  spend: { millionths: 500_000_000, per: "month" },
};
const faultOf = (by: Refusal, waitMs: number, given = limits, noun = "This key") =>
  limitFault(
    {
      outcome: "refused",
      by,
      book: { ...bookOf(given), noun },
      period: { used: by === "spend" ? 500_000_000 : 1_000_250, endsAtMs: Date.UTC(2026, 11, 1) },
      waitMs,
      limitStatus: { requests: allowance(given.requestsPerMinute ?? 0), tokens: allowance(5_000, 300) },
    },
    { tokens: 1_200, promptTokens: 900 },
    "EUR",
  );

test.each<[Refusal, code: string, type: string, message: string, retryAfterSeconds?: number]>([
  [
    "requests",
    "rate_limit_requests",
    "requests",
    "This key may send 10 requests a minute, and has sent them. Try again in 6s.",
    6,
  ],
  [
    "tokens",
    "rate_limit_tokens",
    "tokens",
    "This key may use 5000 tokens a minute and has 300 left; this request may use 1200. Try again in 6s, or allow it a shorter answer with max_tokens.",
    6,
  ],
  [
    "concurrency",
    "concurrency_limit_exceeded",
    "requests",
    "This key may have 2 requests under way at once, and has. Try again in 6s, when one may have ended.",
    6,
  ],
  [
    "budget_reserved",
    "rate_limit_tokens",
    "tokens",
    "This key may use 1000000 tokens a month, and its requests under way have reserved what is left of them. Try again in 6s, when some may have ended.",
    6,
  ],
  [
    "budget",
    "insufficient_quota",
    "insufficient_quota",
    "This key has used 1000250 of 1000000 tokens this month; it begins anew on 1 December, 00:00 UTC.",
  ],
  [
    "spend",
    "insufficient_quota",
    "insufficient_quota",
    "This key has used 500.00 of 500.00 EUR this month; it begins anew on 1 December, 00:00 UTC.",
  ],
  [
    "spend_reserved",
    "rate_limit_tokens",
    "tokens",
    "This key may use 500.00 EUR a month, and its requests under way have reserved what is left of them. Try again in 6s, when some may have ended.",
    6,
  ],
  [
    "prompt",
    "insufficient_quota",
    "insufficient_quota",
    "This prompt has about 900 tokens, more than this key has left of 5000 tokens a minute and 1000000 tokens a month and 500.00 EUR a month. Send a shorter prompt, or ask whoever issued the key for a higher limit.",
  ],
])("a refusal by %s names the limit and when to try again, and never the key", (by, code, type, message, seconds) => {
  const fault = faultOf(by, 5_400);
  expect(fault).toMatchObject({ code, message });
  expect(fault.retryAfterSeconds).toBe(seconds);
  expect(faultEntry(fault.code)).toMatchObject({ status: 429, type });
  expect(fault.message).not.toContain("abcdefABCDEF");
});

test("a refusal is told to wait for a second at least and a minute at most, which clients really do", () => {
  expect(faultOf("requests", 3).retryAfterSeconds).toBe(1);
  expect(faultOf("tokens", 400_000).retryAfterSeconds).toBe(60);
  expect(faultOf("tokens", 400_000).message).toContain("Try again in 6m40s");
});

test("a refusal for a budget that is spent has no time to wait, and is not worth another try", () => {
  const fault = faultOf("budget", 1_000);
  expect(fault.retryAfterSeconds).toBeUndefined();
  expect(faultEntry(fault.code)).toMatchObject({ retry: false });
  expect(faultEntry(fault.code).retryAfterSeconds).toBeUndefined();
});

test("a refusal counts one as one", () => {
  const one: KeyLimits = { requestsPerMinute: 1, concurrency: 1, budget: { tokens: 1_000, per: "day" } };
  expect(faultOf("requests", 1, one).message).toContain("1 request a minute, and has sent it.");
  expect(faultOf("concurrency", 1, one).message).toContain("1 request under way");
  expect(faultOf("budget", 1, one).message).toContain("1000250 of 1000 tokens today");
});

test("a refusal begins with the book that is full, such as a team", () => {
  const by = (refusal: Refusal) => faultOf(refusal, 1, limits, "The team research").message;
  expect(by("spend")).toMatch(
    /^The team research has used 500.00 of 500.00 EUR this month; it begins anew on 1 December/,
  );
  expect(by("prompt")).toContain("more than the team research has left of");
});

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
