import { expect, test } from "vitest";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
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
