import { bookOf, heldIn } from "../../../harness/book-of-a-test.ts";
import { expect, test } from "vitest";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { EarlyLimits } from "../../../../services/gateway/requests/limit-responses.ts";
import type { Refusal } from "../../../../services/gateway/limits/limits.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

function judging(limits: KeyLimits) {
  const clock = new TurnableClock();
  const early = new EarlyLimits(clock);
  const book = bookOf(limits);
  const note = (by: Refusal, waitMs = 2_000): void =>
    early.note({ outcome: "refused", by, book, waitMs, limitStatus: {} });
  return { clock, early, book, note, code: (of = book) => early.judge([of])?.code };
}

test("a key that was refused for its request rate is refused until it may send again", () => {
  const { clock, early, book, note, code } = judging({ requestsPerMinute: 30 });
  expect(code()).toBeUndefined();
  note("requests");
  expect(early.judge([book])).toMatchObject({ code: "rate_limit_requests", retryAfterSeconds: 2 });
  clock.advance(1_999);
  expect(code()).toBe("rate_limit_requests");
  clock.advance(1);
  expect(code()).toBeUndefined();
});

test("a key whose limits have changed is judged by the new ones", () => {
  const { note, code } = judging({ requestsPerMinute: 30 });
  note("requests");
  expect(code(bookOf({ requestsPerMinute: 60 }))).toBeUndefined();
});

test("a key that was given back a request may send again at once", () => {
  const { early, book, note, code } = judging({ requestsPerMinute: 1 });
  note("requests");
  early.forget([heldIn(book)]);
  expect(code()).toBeUndefined();
});

test.each(["tokens", "concurrency", "budget_reserved"] as const)(
  "a refusal for %s says nothing of the key's next request",
  (by) => {
    const { note, code } = judging({ tokensPerMinute: 100 });
    note(by);
    expect(code()).toBeUndefined();
  },
);

test("a spent budget refuses the key's next requests, for a minute until it is asked for again", () => {
  const { clock, note, code } = judging({ budget: { tokens: 1, per: "month" } });
  note("budget", 86_400_000);
  clock.advance(59_999);
  expect(code()).toBe("insufficient_quota");
  clock.advance(1);
  expect(code()).toBeUndefined();
});

test("a key has as many requests under way as its concurrency says, from before their bodies are read", () => {
  const { early, book, code } = judging({ concurrency: 2 });
  const end = early.begin([book]);
  early.begin([book]);
  expect(code()).toBe("concurrency_limit_exceeded");
  end();
  expect(code()).toBeUndefined();
});
