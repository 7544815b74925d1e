import * as fc from "fast-check";
import { expect, test } from "vitest";
import { timingAt, timingOver } from "#shared/protocol/timing.ts";

test("every time of the wire shrinks by the same scale", () => {
  const full = Object.entries(timingAt(1)).filter(([name]) => name !== "scale");
  expect(full.length).toBeGreaterThan(20);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), (thousandths) => {
      const scale = thousandths / 1_000;
      const scaled = new Map(Object.entries(timingAt(scale)));
      expect(scaled.get("scale")).toBe(scale);
      for (const [name, ms] of full) expect(scaled.get(name), name).toBeCloseTo(ms * scale, 6);
    }),
  );
});

test("the waits fit into each other at any scale", () => {
  const timing = timingAt(1);
  expect(timing.suspectAfterMs).toBeGreaterThan(timing.presenceIntervalMs);
  expect(timing.offlineAfterMs).toBeGreaterThan(timing.suspectAfterMs);
  // A job is not lost before its machine had the chance to miss a beat and to answer a probe.
  expect(timing.probeAfterMs).toBeGreaterThan(2 * timing.beatIntervalMs);
  expect(timing.lostAfterMs).toBeGreaterThan(timing.probeAfterMs + timing.beatIntervalMs);
  expect(timing.gatewayGoneAfterMs).toBeGreaterThan(2 * timing.beatIntervalMs);
  // An acceptance that is held back still comes before its gateway asks again.
  expect(timing.acceptWaitMs).toBeGreaterThan(4 * timing.acceptHoldMs);
  // A cancel is remembered for as long as anything about its job may still be repeated.
  expect(timing.cancelRememberMs).toBeGreaterThanOrEqual(timing.terminalRepeatForMs);
  // Neither end of a tunnel forgets a job while the other one may still come back for it.
  const tunnelled = timingOver(timing, { tunnelled: true });
  expect(timing.terminalRepeatForMs).toBeGreaterThan(tunnelled.lostAfterMs);
  expect(timing.cutOffAfterMs).toBeGreaterThan(tunnelled.lostAfterMs);
});
