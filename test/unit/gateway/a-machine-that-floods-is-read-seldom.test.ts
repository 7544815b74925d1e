import { expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import {
  announcementsAtOnceMax,
  announcementsPerIntervalMax,
  FloodGuard,
} from "../../../services/gateway/fleet/flood-guard.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

function guardAt(scale = 1) {
  const clock = new TurnableClock();
  const timing = timingAt(scale);
  const told: object[] = [];
  const dropped: string[] = [];
  const guard = new FloodGuard({
    timing,
    clock,
    log: { warn: (fields: object) => void told.push(fields) } as never,
    meter: { announcementDropped: (machine, kind) => void dropped.push(`${kind} ${machine}`) },
  });
  const admitted = (count: number, machine = "attic"): number =>
    Array.from({ length: count }, () => guard.admits("presence", machine)).filter(Boolean).length;
  return { clock, timing, guard, told, dropped, admitted };
}

test("a machine's announcements are all read while a hundred gateways call the roll at once", () => {
  const { admitted, dropped } = guardAt();
  expect(admitted(announcementsAtOnceMax)).toBe(announcementsAtOnceMax);
  expect(dropped).toEqual([]);
});

test("the announcements of a machine that floods are read seldom, the others are counted, and the log tells it once a minute", () => {
  const { clock, timing, admitted, told, dropped } = guardAt();
  admitted(announcementsAtOnceMax);
  for (let second = 0; second < 30; second += 1) {
    clock.advance(timing.presenceIntervalMs);
    expect(admitted(10_000)).toBe(announcementsPerIntervalMax);
  }
  expect(dropped).toHaveLength(30 * (10_000 - announcementsPerIntervalMax));
  expect(told).toEqual([expect.objectContaining({ machine: "attic", kind: "presence" })]);
  clock.advance(60_000);
  admitted(10_000);
  expect(told).toHaveLength(2);
});

test("a machine's announcements do not count for another machine, nor its beats for its presences", () => {
  const { guard, admitted } = guardAt();
  admitted(10_000);
  expect(admitted(1, "cellar")).toBe(1);
  expect(guard.admits("beat", "attic")).toBe(true);
});

test("a machine's announcements at the pace of a shorter scale of time are all read", () => {
  const { clock, timing, admitted, dropped } = guardAt(0.01);
  for (let second = 0; second < 1_000; second += 1) {
    clock.advance(timing.presenceIntervalMs);
    admitted(2);
  }
  expect(dropped).toEqual([]);
});
