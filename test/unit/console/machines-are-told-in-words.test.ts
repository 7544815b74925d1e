import { expect, test } from "vitest";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { knownSize, pullFit } from "#shared/placing/pull-fit.ts";
import { drainWords, isOutdated } from "../../../services/console/machine-words.ts";

const boot = (given: Partial<ShownFleetMachine>): ShownFleetMachine => ({
  machine: "attic",
  epoch: "1-a",
  status: "present",
  state: "ready",
  pairing: "cordoned",
  runtime: "ollama",
  slots: 4,
  running: 0,
  queued: 0,
  queue_max: 8,
  strays: null,
  heard_ms_ago: 1,
  models: 1,
  open_jobs: 0,
  takes_work: false,
  why: null,
  ...given,
});

test("a cordoned machine has the requests left that run and wait there, and those that it has not reported yet", () => {
  expect(drainWords([boot({ running: 2, queued: 1, open_jobs: 1 })])).toBe("Draining: 3 requests left");
  expect(drainWords([boot({ running: 0, open_jobs: 1 })])).toBe("Draining: 1 request left");
});

test("a drained machine can be switched off once it has no request left", () => {
  expect(drainWords([boot({ state: "draining", pairing: "paired" })])).toBe("Empty: can be switched off");
  expect(drainWords([boot({ pairing: "paired" })])).toBeUndefined();
  expect(drainWords([boot({ status: "offline" })])).toBeUndefined();
});

test("an agent is outdated if its gateway is of a newer version, whose parts count as numbers", () => {
  expect(isOutdated("0.9.0", "0.10.0")).toBe(true);
  expect(isOutdated("0.10.0", "0.9.9")).toBe(false);
  expect(isOutdated("0.3.0", "0.3.0")).toBe(false);
  expect(isOutdated(null, "0.3.0")).toBe(false);
});

test("a model fits onto a machine with room for it on the disk and in memory, by its size on another machine", () => {
  const size = knownSize("qwen3:latest", [{ id: "qwen3", machine: "attic", size_mb: 5_000 }]);
  const of = (total_mb: number, disk_free_mb: number | null, can_pull = true) =>
    pullFit({ total_mb, disk_free_mb, can_pull }, size).join(", ");
  expect(of(24_000, 90_000)).toBe("good, fits (24.0 GB of memory, 90.0 GB of disk free)");
  expect(of(24_000, null)).toBe("good, fits (24.0 GB of memory, disk unknown)");
  expect(of(5_500, 90_000)).toBe("warn, too little memory (5.5 GB, about 6.0 GB needed)");
  expect(of(24_000, 4_000)).toBe("bad, too little disk (4.0 GB free, 5.0 GB needed)");
  expect(of(24_000, 90_000, false)).toMatch(/^bad, may not pull/);
});

test("a model that no machine has is said to fit nowhere and nowhere not", () => {
  expect(knownSize("qwen3", [])).toBeUndefined();
  const memory = { total_mb: 8_000, disk_free_mb: 1_000, can_pull: true };
  expect(pullFit(memory, undefined)).toEqual(["plain", "8.0 GB of memory, 1.0 GB of disk free"]);
});
