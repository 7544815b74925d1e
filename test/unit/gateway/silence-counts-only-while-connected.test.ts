import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import { judgeSilence } from "../../../services/gateway/jobs/judge-silence.ts";

const timing = timingAt(1);
const verdict = (silence: { nowMs: number; heardAtMs?: number; connected?: boolean; connectionSinceMs?: number }) =>
  judgeSilence({ heardAtMs: 0, connected: true, connectionSinceMs: 0, ...silence }, timing);

describe("a job's silence", () => {
  test("is waited for, then probed, then means that the job is lost", () => {
    expect([0, 1_500, 1_501, 3_000, 3_001].map((nowMs) => verdict({ nowMs }))).toEqual([
      "wait",
      "wait",
      "probe",
      "probe",
      "lost",
    ]);
  });

  test("starts anew when the gateway's connection comes back", () => {
    expect(verdict({ nowMs: 60_000, connectionSinceMs: 59_000 })).toBe("wait");
    expect(verdict({ nowMs: 62_001, connectionSinceMs: 59_000 })).toBe("lost");
  });

  test("means nothing while the gateway is cut off, until that has lasted too long", () => {
    const cutOff = { heardAtMs: 0, connected: false, connectionSinceMs: 10_000 };
    const lastMs = 10_000 + timing.cutOffAfterMs;
    expect(verdict({ ...cutOff, nowMs: lastMs })).toBe("wait");
    expect(verdict({ ...cutOff, nowMs: lastMs + 1 })).toBe("cut-off");
    expect(timing.cutOffAfterMs).toBeGreaterThan(timing.lostAfterMs);
  });

  test("grows worse with time only, and any word ends it", () => {
    const order = ["wait", "probe", "lost"];
    const ms = fc.nat(20_000);
    fc.assert(
      fc.property(ms, ms, ms, ms, (heardAtMs, connectionSinceMs, a, b) => {
        const at = (nowMs: number) => order.indexOf(verdict({ nowMs, heardAtMs, connectionSinceMs }));
        const start = Math.max(heardAtMs, connectionSinceMs);
        const [earlier, later] = [start + Math.min(a, b), start + Math.max(a, b)];
        expect(at(earlier)).toBeLessThanOrEqual(at(later));
        expect(verdict({ nowMs: later, heardAtMs: later, connectionSinceMs })).toBe("wait");
      }),
    );
  });
});
