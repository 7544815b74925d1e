import { expect, test } from "vitest";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { keyId } from "#shared/keys/key-token.ts";
import { EarlyLimits } from "../../../../services/gateway/requests/limit-responses.ts";
import type { Admission } from "../../../../services/gateway/limits/limits.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

const id = keyId.parse("0123456789ab");
const refusal = (by: Extract<Admission, { outcome: "refused" }>["by"], waitMs = 2_000) =>
  ({ outcome: "refused", by, waitMs, limitStatus: {} }) as const;

function judging(limits: KeyLimits) {
  const clock = new TurnableClock();
  const early = new EarlyLimits(clock);
  return { clock, early, limits, code: (of = limits) => early.judge({ id, limits: of })?.code };
}

test("a key that was refused for its request rate is refused until it may send again", () => {
  const { clock, early, limits, code } = judging({ requestsPerMinute: 30 });
  expect(code()).toBeUndefined();
  early.note(limits, refusal("requests"));
  expect(early.judge({ id, limits })).toMatchObject({ code: "rate_limit_requests", retryAfterSeconds: 2 });
  clock.advance(1_999);
  expect(code()).toBe("rate_limit_requests");
  clock.advance(1);
  expect(code()).toBeUndefined();
});

test("a key whose limits have changed is judged by the new ones", () => {
  const { early, limits, code } = judging({ requestsPerMinute: 30 });
  early.note(limits, refusal("requests"));
  expect(code({ requestsPerMinute: 60 })).toBeUndefined();
});

test("a key that was given back a request may send again at once", () => {
  const { early, limits, code } = judging({ requestsPerMinute: 1 });
  early.note(limits, refusal("requests"));
  early.forget(limits);
  expect(code()).toBeUndefined();
});

test.each(["tokens", "concurrency", "budget_reserved"] as const)(
  "a refusal for %s says nothing of the key's next request",
  (by) => {
    const { early, limits, code } = judging({ tokensPerMinute: 100 });
    early.note(limits, refusal(by));
    expect(code()).toBeUndefined();
  },
);

test("a spent budget refuses the key's next requests, for a minute until it is asked for again", () => {
  const { clock, early, limits, code } = judging({ budget: { tokens: 1, per: "month" } });
  early.note(limits, refusal("budget", 86_400_000));
  clock.advance(59_999);
  expect(code()).toBe("insufficient_quota");
  clock.advance(1);
  expect(code()).toBeUndefined();
});

test("a key has as many requests under way as its concurrency says, from before their bodies are read", () => {
  const { early, code } = judging({ concurrency: 2 });
  const end = early.begin({ id });
  early.begin({ id });
  expect(code()).toBe("concurrency_limit_exceeded");
  end();
  expect(code()).toBeUndefined();
});
