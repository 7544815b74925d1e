import { requestOfATest, type WishedRequest } from "./request-of-a-test.ts";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { Breakers, contradictionsMax } from "../../../services/gateway/routing/breakers.ts";
import { DeadlyRequests, RetryBudget } from "../../../services/gateway/requests/bound-failover.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const timing = timingAt(1);

/** How many are granted one after the other at this moment. */
const granted = (budget: RetryBudget): number => {
  let count = 0;
  while (count < 10_000 && budget.take()) count += 1;
  return count;
};

test("the budget of second tries is a tenth of the requests that came, however many of them fail", () => {
  const requests = { count: 0 };
  const budget = new RetryBudget(new TurnableClock(), requests);
  granted(budget);
  let tries = 0;
  for (; requests.count < 10_000; requests.count += 1) {
    tries += granted(budget);
  }
  expect(tries).toBeGreaterThanOrEqual(990);
  expect(tries).toBeLessThanOrEqual(1_000);
});

test("the budget of second tries comes back slowly where there are few requests, and never beyond its reserve", async () => {
  const clock = new TurnableClock();
  const budget = new RetryBudget(clock, { count: 0 });
  granted(budget);
  await clock.advanceAwaiting(5_000);
  expect(granted(budget)).toBe(5);
  await clock.advanceAwaiting(3_600_000);
  expect(granted(budget)).toBe(20);
});

const failure = { code: "upstream_error", nowMs: 0 } as const;
const fail = (breakers: Breakers, times: number): boolean[] =>
  Array.from({ length: times }, () => breakers.failed("attic", "llama3", failure));

test("a breaker opens with the fifth failure in a row, tells so once, and concerns one model of one machine", () => {
  const breakers = new Breakers(timing);
  expect(fail(breakers, 4)).toEqual([false, false, false, false]);
  expect(breakers.avoids("attic", "llama3", 0)).toBeUndefined();
  expect(fail(breakers, 2)).toEqual([true, false]);
  expect(breakers.avoids("attic", "llama3", 0)).toBe("breaker");
  expect(breakers.avoids("attic", "qwen3", 0)).toBeUndefined();
  expect(breakers.avoids("cellar", "llama3", 0)).toBeUndefined();
});

test("a breaker is closed by any success", () => {
  const breakers = new Breakers(timing);
  fail(breakers, 4);
  breakers.worked("attic", "llama3");
  expect(fail(breakers, 4)).not.toContain(true);
});

test.each(["server_is_overloaded", "context_length_exceeded", "client_closed", "shutting_down", "stream_gap"] as const)(
  "a breaker is not moved by %s, which is no fault of the machine",
  (code) => {
    const breakers = new Breakers(timing);
    for (let times = 0; times < 20; times += 1) breakers.failed("attic", "llama3", { code, nowMs: 0 });
    expect(breakers.avoids("attic", "llama3", 0)).toBeUndefined();
  },
);

test("the last failure of each machine is kept with its reason, and a refused request is none", () => {
  const breakers = new Breakers(timing);
  expect(breakers.lastFaultOn("attic")).toBeUndefined();
  breakers.failed("attic", "llama3", { code: "upstream_error", nowMs: 1, reason: "out of memory" });
  breakers.failed("attic", "qwen3", { code: "stream_gap", nowMs: 2, reason: "frame 7 did not come again" });
  breakers.failed("attic", "qwen3", { code: "context_length_exceeded", nowMs: 3 });
  breakers.worked("attic", "qwen3");
  const kept = { code: "stream_gap", model: "qwen3", reason: "frame 7 did not come again", nowMs: 2 };
  expect([breakers.lastFaultOn("attic"), breakers.lastFaultOn("cellar")]).toEqual([kept, undefined]);
  for (let at = 0; at < 3_000; at += 1) breakers.failed(`m${at}`, "m", { code: "upstream_error", nowMs: 4 });
  expect(breakers.lastFaultOn("attic")).toBeUndefined();
});

test("a breaker lets one request through after a while, and others only once that has worked", () => {
  const breakers = new Breakers(timing);
  fail(breakers, 5);
  const laterMs = timing.breakerOpenMs;
  expect(breakers.avoids("attic", "llama3", laterMs - 1)).toBe("breaker");
  expect(breakers.avoids("attic", "llama3", laterMs)).toBeUndefined();
  breakers.placed("attic", "llama3", laterMs);
  expect(breakers.avoids("attic", "llama3", laterMs)).toBe("breaker");
  breakers.worked("attic", "llama3");
  expect(breakers.avoids("attic", "llama3", laterMs)).toBeUndefined();
});

const clock = new TurnableClock();
const asking = (wish: WishedRequest = {}) => requestOfATest(clock, { keyId: "ann", body: '{"messages":[]}', ...wish });
const refused = (deadly: DeadlyRequests, nowMs = 0, asked = asking()): string => {
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
] as const)("a request under which runtimes died after %j on as many machines is %s", (deaths, outcome) => {
  const deadly = new DeadlyRequests(timing);
  for (const [place, what] of deaths.entries()) deadly.died(what, `gpu-${place}`, asking(), 0);
  expect(refused(deadly)).toBe(outcome);
});

test("a machine that fails many times under one request counts once, with the worst of its failures", () => {
  const deadly = new DeadlyRequests(timing);
  for (let deaths = 0; deaths < 20; deaths += 1) deadly.died(deaths % 2 ? "machine" : "runtime", "gpu-1", asking(), 0);
  expect(refused(deadly)).toBe("passed on");
  deadly.died("runtime", "gpu-2", asking(), 0);
  expect(refused(deadly)).toBe("poison_request");
});

test("a request that a machine answered is as good as new", () => {
  const deadly = new DeadlyRequests(timing);
  deadly.died("runtime", "gpu-1", asking(), 0);
  const again = asking();
  expect(refused(deadly, 0, again)).toBe("passed on");
  // The body is let go of with the first piece of the answer.
  again.releaseBody();
  deadly.worked(again);
  deadly.died("runtime", "gpu-2", asking(), 0);
  expect(refused(deadly)).toBe("passed on");
});

test("a request under which runtimes died is the only one that is refused, and is forgotten after a while", () => {
  const deadly = new DeadlyRequests(timing);
  for (const machine of ["gpu-1", "gpu-2"]) deadly.died("runtime", machine, asking(), 0);
  for (const other of [{ body: "{}" }, { models: ["qwen3"] }, { keyId: "bob" }])
    expect(refused(deadly, 0, asking(other))).toBe("passed on");
  expect(refused(deadly, timing.deadlyRememberMs - 1)).toBe("poison_request");
  expect(refused(deadly, timing.deadlyRememberMs)).toBe("passed on");
});

test("a request under which runtimes died does not push out the memory of others without end", () => {
  const deadly = new DeadlyRequests(timing);
  for (let count = 0; count < 1_500; count += 1) {
    deadly.died("machine", "gpu-1", asking({ body: String(count) }), 0);
  }
  for (const machine of ["gpu-1", "gpu-2"]) deadly.died("runtime", machine, asking(), 0);
  expect(refused(deadly)).toBe("poison_request");
});

function claims() {
  const all = new Breakers(timing);
  /** In each of so many presences the machine tells a free slot and then says busy. */
  const contradict = (presences: number, nowMs = 0): boolean[] =>
    Array.from({ length: presences }, () => {
      all.reported("attic");
      return all.contradicted("attic", "llama3", nowMs);
    });
  return { all, contradict };
}

test("a machine that contradicts as many presences as contradictionsMax is asked last for a while, and told once", () => {
  const { all, contradict } = claims();
  expect(contradict(contradictionsMax + 2)).toEqual([false, false, true, false, false]);
  expect(all.avoids("attic", "llama3", timing.breakerOpenMs - 1)).toBe("contradicts");
  expect(all.avoidedOn("attic", 0)).toEqual({ broken: [], contradicted: ["llama3"] });
  expect(all.avoids("attic", "llama3", timing.breakerOpenMs)).toBeUndefined();
});

test("a machine that contradicts itself again after that is asked last again at once", () => {
  const { all, contradict } = claims();
  contradict(contradictionsMax);
  contradict(1, timing.breakerOpenMs);
  expect(all.avoids("attic", "llama3", timing.breakerOpenMs + 1)).toBe("contradicts");
});

test("a busy has no room until the next presence, and many of one presence count once", () => {
  const { all } = claims();
  for (let times = 0; times < 10; times += 1) all.contradicted("attic", "llama3", 0);
  expect([all.isBusy("attic", "llama3"), all.isBusy("attic", "qwen"), all.isBusy("cellar", "llama3")]).toEqual([
    true,
    false,
    false,
  ]);
  expect(all.avoids("attic", "llama3", 0)).toBeUndefined();
  all.reported("attic");
  expect(all.isBusy("attic", "llama3")).toBe(false);
});

test("a machine that takes a job in between, as one does that others fill, is not held to have contradicted itself", () => {
  const { all, contradict } = claims();
  for (let times = 0; times < 10; times += 1) {
    contradict(contradictionsMax - 1);
    all.took("attic", "llama3");
  }
  expect(all.avoids("attic", "llama3", 0)).toBeUndefined();
});
