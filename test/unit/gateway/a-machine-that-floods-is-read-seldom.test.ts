import { expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import {
  announcementsAtOnceMax,
  announcementsPerIntervalMax,
  FloodGuard,
} from "../../../services/gateway/fleet/flood-guard.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { presenceSubject } from "#shared/protocol/subjects.ts";
import { PresenceReader } from "../../../services/gateway/fleet/follow-presence.ts";
import { presenceOf } from "./machines-of-a-fleet.ts";

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

const said = (machine: string, fields: Partial<Presence> = {}) => ({
  subject: presenceSubject(machine),
  data: encodeJson(presenceOf(machine, fields)),
});

test("a repeated presence is not read again, and any other is read", () => {
  const reader = new PresenceReader();
  const first = reader.read(said("gpu-1"));
  expect(first).toEqual(presenceOf("gpu-1"));
  expect(reader.read(said("gpu-1"))).toBe(first);
  expect(reader.read(said("gpu-1", { running: 1 }))).toEqual(presenceOf("gpu-1", { running: 1 }));
  expect(reader.read(said("gpu-1"))).toEqual(presenceOf("gpu-1"));
  expect(reader.read(said("gpu-2"))).toEqual(presenceOf("gpu-2"));
});

test("a message whose memory the connection uses again changes nothing of what was said", () => {
  const reader = new PresenceReader();
  const memory = said("gpu-1").data;
  const first = reader.read({ subject: presenceSubject("gpu-1"), data: memory });
  memory.set(encodeJson(presenceOf("gpu-1", { queueMax: 9 })));
  expect(reader.read({ subject: presenceSubject("gpu-1"), data: memory })?.queueMax).toBe(9);
  expect(first?.queueMax).toBe(8);
});

test("a machine speaks for itself only, also with what it said under its own name", () => {
  const reader = new PresenceReader();
  const { data } = said("gpu-1");
  reader.read({ subject: presenceSubject("gpu-1"), data });
  expect(reader.read({ subject: presenceSubject("gpu-2"), data })).toBeUndefined();
  expect(reader.read({ subject: presenceSubject("gpu-1"), data: Buffer.from("{}") })).toBeUndefined();
});

test("more machines than are kept are read none the less, and the one heard the longest ago is let go of", () => {
  const reader = new PresenceReader();
  const first = reader.read(said("gpu-0"));
  const second = reader.read(said("gpu-1"));
  for (let place = 2; place < 10_000; place += 1) reader.read(said(`gpu-${place}`));
  expect(reader.read(said("gpu-0"))).toBe(first);
  reader.read(said("gpu-10000"));
  expect(reader.read(said("gpu-0"))).toBe(first);
  const again = reader.read(said("gpu-1"));
  expect(again).toEqual(presenceOf("gpu-1"));
  expect(again).not.toBe(second);
});
