import { expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import { Roster } from "../../../services/gateway/fleet/roster.ts";
import { bootAt, presenceOf } from "./machines-of-a-fleet.ts";

const timing = timingAt(1);

function rosterWith(...machines: string[]): Roster {
  const roster = new Roster(timing);
  for (const machine of machines) roster.announced(presenceOf(machine), 0);
  return roster;
}
const statusAt = (roster: Roster, nowMs: number) => roster.find("gpu-1", nowMs)?.status;
const present = (roster: Roster, nowMs: number): string[] =>
  roster.present(nowMs).map(({ presence }) => presence.machine);

test("a machine is in a state since it was first heard in it, or since it was started anew", () => {
  const roster = rosterWith("gpu-1");
  const since = (fields: Parameters<typeof presenceOf>[1], nowMs: number) => {
    roster.announced(presenceOf("gpu-1", fields), nowMs);
    return roster.find("gpu-1", nowMs)?.stateSinceMs;
  };
  expect([since({}, 1_000), since({ state: "waiting" }, 2_000), since({ state: "waiting" }, 3_000)]).toEqual([
    0, 2_000, 2_000,
  ]);
  expect(since({ state: "waiting", epoch: bootAt(9) }, 4_000)).toBe(4_000);
});

test("a machine is there while it is heard, suspect when it is silent, and then offline", () => {
  const roster = rosterWith("gpu-1", "gpu-2");
  roster.announced(presenceOf("gpu-2"), 1_000);
  expect([2_000, 2_001, 3_000, 3_001].map((nowMs) => statusAt(roster, nowMs))).toEqual([
    "present",
    "suspect",
    "suspect",
    "offline",
  ]);
  expect([present(roster, 3_000), present(roster, 3_001)]).toEqual([["gpu-1", "gpu-2"], ["gpu-2"]]);
  expect(roster.all(9_999)).toHaveLength(2);
  expect(roster.find("gpu-3", 0)).toBeUndefined();
});

test("a machine is heard by its beats, were its presence late, but not by those of another boot", () => {
  const roster = rosterWith("gpu-1", "gpu-2");
  const { epoch } = presenceOf("gpu-1");
  roster.heard({ machine: "gpu-1", epoch }, 2_900);
  roster.heard({ machine: "gpu-2", epoch: bootAt(9) }, 2_900);
  roster.heard({ machine: "gpu-9", epoch }, 2_900);
  expect(statusAt(roster, 4_900)).toBe("present");
  expect(present(roster, 4_900)).toEqual(["gpu-1"]);
});

test("a machine that says goodbye is away at once, and there again when it announces itself", () => {
  const roster = rosterWith("gpu-1");
  roster.announced(presenceOf("gpu-1", { state: "gone" }), 100);
  expect(present(roster, 100)).toEqual([]);
  roster.announced(presenceOf("gpu-1", { epoch: bootAt(200) }), 200);
  expect(present(roster, 200)).toEqual(["gpu-1"]);
});

test("a machine that the broker does not find is away until it is heard", () => {
  const roster = rosterWith("gpu-1");
  const { epoch } = presenceOf("gpu-1", { epoch: bootAt(5) });
  roster.announced(presenceOf("gpu-1", { epoch }), 10);
  roster.notReached({ machine: "gpu-1", epoch });
  expect(present(roster, 20)).toEqual([]);
  roster.heard({ machine: "gpu-1", epoch }, 30);
  expect(present(roster, 30)).toEqual(["gpu-1"]);
  roster.notReached({ machine: "gpu-1", epoch });
  roster.announced(presenceOf("gpu-1", { epoch }), 40);
  expect(present(roster, 40)).toEqual(["gpu-1"]);
});

test("a machine that booted anew is not blamed for a boot that is not found any more", () => {
  const roster = rosterWith();
  roster.announced(presenceOf("gpu-1", { epoch: bootAt(9) }), 0);
  roster.notReached({ machine: "gpu-1", epoch: bootAt(3) });
  expect(present(roster, 0)).toEqual(["gpu-1"]);
});

test("a machine is its newest boot: what an older one says is not heard while that is there, not even its goodbye", () => {
  const roster = rosterWith();
  const newer = presenceOf("gpu-1", { epoch: bootAt(9), slots: 9 });
  roster.announced(newer, 0);
  roster.announced(presenceOf("gpu-1", { epoch: bootAt(3), state: "gone" }), 10);
  roster.announced(presenceOf("gpu-1", { epoch: bootAt(3) }), 20);
  expect(roster.find("gpu-1", 20)).toMatchObject({ presence: newer, status: "present" });
});

test("a machine whose host set its clock back is believed when its former boot is away", () => {
  const roster = rosterWith();
  roster.announced(presenceOf("gpu-1", { epoch: bootAt(9) }), 0);
  const older = presenceOf("gpu-1", { epoch: bootAt(3) });
  roster.announced(older, 3_001);
  expect(roster.find("gpu-1", 3_001)).toMatchObject({ presence: older, status: "present" });
});

test("a machine is not blamed for a silence in which the gateway itself was cut off", () => {
  const roster = rosterWith("gpu-1");
  roster.reconnected(60_000);
  expect(statusAt(roster, 60_100)).toBe("present");
  expect(statusAt(roster, 63_001)).toBe("offline");
});

test("a machine is awaited from when the gateway's connection came back until it is heard", () => {
  const roster = rosterWith("gpu-1", "gpu-2");
  expect(roster.awaited("gpu-1")).toBe(false);
  roster.reconnected(60_000);
  roster.heard(presenceOf("gpu-2"), 60_100);
  expect(["gpu-1", "gpu-2", "gpu-9"].map((name) => roster.awaited(name))).toEqual([true, false, false]);
  roster.announced(presenceOf("gpu-1"), 60_200);
  expect(roster.awaited("gpu-1")).toBe(false);
});
