import { expect, test } from "vitest";
import { targetsPerRouteMax } from "#shared/records/route-record.ts";
import type { WishedRequest } from "./request-of-a-test.ts";
import { broken, placing } from "./placed-requests.ts";

/** Two machines with the first target of a route, and two with the second. */
const models = { "gpu-1": ["large"], "gpu-2": ["large"], "gpu-3": ["small"], "gpu-4": ["small"] };
const onRoute = (...targets: string[]): WishedRequest => ({ models: targets, routed: "claude" });
const route = onRoute("large", "small");

test("a request by a route is answered by its first target while a machine of that is there", async () => {
  const { run, answer, placed } = await placing({ models });
  const outcome = run("{}", route);
  expect([await answer(), await outcome, placed()]).toEqual([expect.stringMatching(/^gpu-[12] large$/), "end", 1]);
});

test("a request by a route is answered by the next target at once while no machine of the first is there", async () => {
  const { run, answer, placed } = await placing({ models, present: ["gpu-3"] });
  const outcome = run("{}", route);
  expect([await answer(), await outcome, placed()]).toEqual(["gpu-3 small", "end", 1]);
});

test("a request by a route goes to the next target when the machines of the first turn out to be away", async () => {
  const { run, answer, leave, settle, pass, timing } = await placing({ models, present: ["gpu-1", "gpu-3"] });
  leave("gpu-1");
  const outcome = run("{}", route);
  await settle();
  await pass(timing.retryAfterNobodyMs);
  expect([await answer(), await outcome]).toEqual(["gpu-3 small", "end"]);
});

test("a request by a route goes to the next target when all machines of the first have failed", async () => {
  const { run, fail, answer, heard } = await placing({ models });
  const outcome = run("{}", route);
  const failed = [await fail(broken), await fail(broken)].toSorted();
  expect([failed, await answer()]).toEqual([["gpu-1", "gpu-2"], expect.stringMatching(/^gpu-[34] small$/)]);
  expect([await outcome, heard]).toEqual(["end", ["Hello"]]);
});

test("a request by a route goes to the next target when the machines of the first are full", async () => {
  const { run, next, settle, answer } = await placing({ models, present: ["gpu-1", "gpu-3"] });
  const outcome = run("{}", route);
  const { machine, job } = await next();
  machine.say(job, "reject", { reason: "busy", message: "The queue is full." });
  await settle();
  expect([await answer(), await outcome]).toEqual(["gpu-3 small", "end"]);
});

test("a request by a route may come to a machine again that failed with another model", async () => {
  const { run, fail, answer } = await placing({ models: { "gpu-1": ["large", "small"] }, present: ["gpu-1"] });
  const outcome = run("{}", route);
  expect([await fail(broken), await answer(), await outcome]).toEqual(["gpu-1", "gpu-1 small", "end"]);
});

test("a request by a route ends in the last failure of a machine when no target is left", async () => {
  const { run, fail } = await placing({ models, present: ["gpu-1", "gpu-3"] });
  const outcome = run("{}", route);
  await fail(broken);
  await fail({ code: "runtime_offline", message: "It does not answer." });
  expect(await outcome).toBe("runtime_offline");
});

test("a request by a route is told that it is away, not unknown, when one target of several is known", async () => {
  const { run } = await placing({ models, present: [] });
  expect(await run("{}", route)).toBe("agent_offline");
});

test("however many machines of a target fail at once, none of their requests is without a next target", async () => {
  const { run, fail, answer, placed } = await placing({ models, present: ["gpu-1", "gpu-3"] });
  for (let request = 0; request < 100; request += 1) {
    const outcome = run(String(request), route);
    await fail(broken);
    expect([await answer(), await outcome]).toEqual(["gpu-3 small", "end"]);
  }
  expect(placed()).toBe(200);
});

test("requests whose targets all fail try one target more each, once the reserve is used up", async () => {
  const names = Array.from({ length: targetsPerRouteMax }, (_, place) => `m${place}`);
  const { run, fail, placed, settle } = await placing({ models: { "gpu-1": names }, present: ["gpu-1"] });
  const requests = 20;
  for (let request = 0; request < requests; request += 1) {
    const outcome = run(String(request), onRoute(...names));
    await settle();
    for (let before = -1; placed() > before;) {
      before = placed();
      await fail(broken);
    }
    expect(await outcome).toBe("upstream_error");
  }
  // One each, 20 in reserve, and one more each.
  expect(placed()).toBe(requests + 20 + requests);
});
