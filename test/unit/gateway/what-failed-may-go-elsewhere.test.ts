import { describe, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { Breakers } from "../../../services/gateway/dispatch/breakers.ts";
import { DeadlyRequests } from "../../../services/gateway/dispatch/deadly-requests.ts";
import { RetryBudget } from "../../../services/gateway/dispatch/retry-budget.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const timing = timingAt(1);

describe("the budget of second tries", () => {
  /** How many are granted one after the other at this moment. */
  const granted = (budget: RetryBudget): number => {
    let count = 0;
    while (count < 10_000 && budget.take()) count += 1;
    return count;
  };

  test("lets a small site survive a machine with all that it had under way", () => {
    expect(granted(new RetryBudget(new TurnableClock()))).toBe(20);
  });

  test("is a tenth of the requests that came, however many of them fail", () => {
    const budget = new RetryBudget(new TurnableClock());
    granted(budget);
    let tries = 0;
    for (let request = 0; request < 10_000; request += 1) {
      budget.asked();
      tries += granted(budget);
    }
    expect(tries).toBeGreaterThanOrEqual(990);
    expect(tries).toBeLessThanOrEqual(1_000);
  });

  test("comes back slowly where there are few requests, and never beyond its reserve", async () => {
    const clock = new TurnableClock();
    const budget = new RetryBudget(clock);
    granted(budget);
    await clock.advanceAwaiting(5_000);
    expect(granted(budget)).toBe(5);
    await clock.advanceAwaiting(3_600_000);
    expect(granted(budget)).toBe(20);
  });
});

describe("a breaker", () => {
  const failure = { code: "upstream_error", nowMs: 0 } as const;
  const fail = (breakers: Breakers, times: number): boolean[] =>
    Array.from({ length: times }, () => breakers.failed("attic", "llama3", failure));

  test("opens with the fifth failure in a row, tells so once, and concerns one model of one machine", () => {
    const breakers = new Breakers(timing);
    expect(fail(breakers, 4)).toEqual([false, false, false, false]);
    expect(breakers.avoids("attic", "llama3", 0)).toBe(false);
    expect(fail(breakers, 2)).toEqual([true, false]);
    expect(breakers.avoids("attic", "llama3", 0)).toBe(true);
    expect(breakers.avoids("attic", "qwen3", 0)).toBe(false);
    expect(breakers.avoids("cellar", "llama3", 0)).toBe(false);
  });

  test("is closed by any success", () => {
    const breakers = new Breakers(timing);
    fail(breakers, 4);
    breakers.worked("attic", "llama3");
    expect(fail(breakers, 4)).not.toContain(true);
  });

  test.each([
    "server_is_overloaded",
    "context_length_exceeded",
    "client_closed",
    "shutting_down",
    "stream_gap",
  ] as const)("is not moved by %s, which is no fault of the machine", (code) => {
    const breakers = new Breakers(timing);
    for (let times = 0; times < 20; times += 1) breakers.failed("attic", "llama3", { code, nowMs: 0 });
    expect(breakers.avoids("attic", "llama3", 0)).toBe(false);
  });

  test("lets one request through after a while, and others only once that has worked", () => {
    const breakers = new Breakers(timing);
    fail(breakers, 5);
    const laterMs = timing.breakerOpenMs;
    expect(breakers.avoids("attic", "llama3", laterMs - 1)).toBe(true);
    expect(breakers.avoids("attic", "llama3", laterMs)).toBe(false);
    breakers.placed("attic", "llama3", laterMs);
    expect(breakers.avoids("attic", "llama3", laterMs)).toBe(true);
    breakers.worked("attic", "llama3");
    expect(breakers.avoids("attic", "llama3", laterMs)).toBe(false);
  });
});

describe("a request under which runtimes died", () => {
  const request = { kind: "chat", modelId: "llama3", body: Buffer.from('{"messages":[]}') };
  const refused = (deadly: DeadlyRequests, nowMs = 0, asked = request): string => {
    try {
      deadly.refuse(asked, nowMs);
      return "passed on";
    } catch (thrown) {
      return Fault.from(thrown).code;
    }
  };

  test.each([
    [["runtime", "runtime"], "poison_request"],
    [["runtime"], "passed on"],
    [["machine", "machine"], "passed on"],
    [["machine", "machine", "machine"], "poison_request"],
    [["runtime", "machine"], "passed on"],
  ] as const)("after %j is %s", (deaths, outcome) => {
    const deadly = new DeadlyRequests(timing);
    for (const what of deaths) deadly.died(what, request, 0);
    expect(refused(deadly)).toBe(outcome);
  });

  test("is the only one that is refused, and is forgotten after a while", () => {
    const deadly = new DeadlyRequests(timing);
    for (let deaths = 0; deaths < 2; deaths += 1) deadly.died("runtime", request, 0);
    expect(refused(deadly, 0, { ...request, body: Buffer.from("{}") })).toBe("passed on");
    expect(refused(deadly, 0, { ...request, modelId: "qwen3" })).toBe("passed on");
    expect(refused(deadly, timing.deadlyRememberMs - 1)).toBe("poison_request");
    expect(refused(deadly, timing.deadlyRememberMs)).toBe("passed on");
  });

  test("does not push out the memory of others without end", () => {
    const deadly = new DeadlyRequests(timing);
    for (let count = 0; count < 1_500; count += 1) {
      deadly.died("machine", { ...request, body: Buffer.from(String(count)) }, 0);
    }
    for (let deaths = 0; deaths < 2; deaths += 1) deadly.died("runtime", request, 0);
    expect(refused(deadly)).toBe("poison_request");
  });
});
