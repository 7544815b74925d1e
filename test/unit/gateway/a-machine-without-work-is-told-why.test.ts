import { expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import { loadOf } from "../../../services/gateway/routing/expected-cost.ts";
import { LeftOut, leftOutMax } from "../../../services/gateway/fleet/roster.ts";
import { Roster, type RosterMachine } from "../../../services/gateway/fleet/roster.ts";
import { judgeWork } from "../../../services/gateway/routing/explain-routing.ts";
import { bootAt, presenceOf } from "./machines-of-a-fleet.ts";

const nowMs = 60_000;

function why(
  fields: Parameters<typeof presenceOf>[1] = {},
  about: Partial<RosterMachine> & { models?: number; broken?: string[]; pending?: number } = {},
): string {
  const { models = 1, broken = [], pending = 0, ...seenAs } = about;
  const presence = presenceOf("attic", fields);
  const seen: RosterMachine = {
    presence,
    status: "present",
    heardAtMs: nowMs - 400,
    stateSinceMs: 0,
    unreachable: false,
    isCordoned: false,
    ...seenAs,
  };
  const load = loadOf(presence, { jobs: presence.running + presence.queued + pending, backlogTokens: 0 });
  const { takesWork, why: words } = judgeWork({ seen, load, models, broken }, nowMs);
  return `${takesWork ? "works" : "none"}: ${words ?? "-"}`;
}

test.each([
  ["that gets its share", why(), "works: -"],
  [
    "that was not heard for long",
    why({}, { status: "offline", heardAtMs: nowMs - 12_000 }),
    "none: not heard for 12 s",
  ],
  ["that nobody reaches", why({}, { status: "offline", unreachable: true }), "none: its agent is not connected"],
  ["that has left", why({ state: "gone" }, { status: "offline" }), "none: has said goodbye"],
  ["that is about to stop", why({ state: "draining" }), "none: draining: it finishes its jobs and takes no new one"],
  ["that has no runtime", why({ state: "waiting", runtime: null }), "none: no model server answers"],
  ["that has no model", why({}, { models: 0 }), "none: offers no model, as far as is known"],
  ["that is full", why({ running: 1, queued: 8 }), "works: its queue is full"],
  ["that this gateway has just filled", why({ queueMax: 0 }, { pending: 1 }), "works: its queue is full"],
  [
    "that is silent and fails with two models",
    why({}, { status: "suspect", heardAtMs: nowMs - 2_300, broken: ["llama3", "qwen3"] }),
    "works: not heard for 2 s: others come first; breaker open for llama3, qwen3",
  ],
  [
    "that fails with many",
    why({}, { broken: ["a", "b", "c", "d", "e", "f", "g"] }),
    "works: breaker open for a, b, c, d, e and 2 more",
  ],
])("a machine is told of %s", (_, told, expected) => {
  expect(told).toBe(expected);
});

const forgetMs = timingAt(1).offlineAfterMs;

test("machines that are left out are remembered by their boots for as long as they are heard", () => {
  const leftOut = new LeftOut({ forgetMs });
  const older = presenceOf("attic", { epoch: bootAt(1) });
  leftOut.heard(older, "older", 0);
  leftOut.heard(presenceOf("cellar"), "other-scale", 1_000);
  expect(leftOut.all(1_000).map(({ presence, cause }) => [presence.machine, cause])).toEqual([
    ["attic", "older"],
    ["cellar", "other-scale"],
  ]);
  expect(leftOut.all(forgetMs + 1).map(({ presence }) => presence.machine)).toEqual(["cellar"]);
  leftOut.heard({ ...presenceOf("cellar"), state: "gone" }, "other-scale", 1_500);
  expect(leftOut.all(1_500).map(({ presence }) => presence.machine)).toEqual(["attic"]);
});

test("machines that are left out are so many at most, whatever names a machine makes up", () => {
  const leftOut = new LeftOut({ forgetMs });
  for (let each = 0; each < leftOutMax + 10; each += 1) leftOut.heard(presenceOf(`m-${each}`), "other-scale", 0);
  const all = leftOut.all(0);
  expect([all.length, all[0]?.presence.machine]).toEqual([leftOutMax, "m-10"]);
});

test("machines that are left out are not in the roster's picture, which tells how long ago it heard each machine", () => {
  const roster = new Roster(timingAt(1));
  roster.announced(presenceOf("attic"), 10);
  roster.heard({ machine: "attic", epoch: bootAt(0) }, 500);
  expect(roster.find("attic", 900)).toMatchObject({ heardAtMs: 500, unreachable: false, status: "present" });
});
