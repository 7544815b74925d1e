import { describe, expect, test } from "vitest";
import { jobStates, type JobState } from "#shared/protocol/frame-payload.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { judgeProgress } from "../../../services/agent/jobs/agent-job.ts";

const timing = timingAt(1);

/** What is thought of a job that was accepted at 0. */
function verdict(job: { state: JobState; nowMs: number; progressAtMs?: number; remainingMs?: number }): string {
  const { state, nowMs, progressAtMs = 0, remainingMs = 600_000 } = job;
  const fault = judgeProgress(
    { state, acceptedAtMs: 0, progressAtMs, head: { kind: "chat", remainingMs } },
    nowMs,
    timing,
  );
  return fault === undefined ? "goes on" : `${fault.code}: ${fault.message}`;
}

describe("a job", () => {
  test("in the middle of its answer may be silent for noProgressMs and no longer", () => {
    expect(verdict({ state: "running", nowMs: 60_000 })).toBe("goes on");
    expect(verdict({ state: "running", nowMs: 60_001 })).toMatch(/^upstream_timeout: .*60000 ms.*noProgressMs/);
    expect(verdict({ state: "running", nowMs: 90_000, progressAtMs: 30_000 })).toBe("goes on");
  });

  test.each(["prefill", "loading"] as const)("that is %s has firstTokenMs", (state) => {
    expect(verdict({ state, nowMs: 300_000 })).toBe("goes on");
    expect(verdict({ state, nowMs: 300_001 })).toMatch(/^upstream_timeout: .*300000 ms.*firstTokenMs/);
    expect(verdict({ state, nowMs: 400_000, progressAtMs: 150_000 })).toBe("goes on");
  });

  test("whose body stops arriving is given up after partsWaitMs", () => {
    expect(verdict({ state: "receiving", nowMs: 10_000 })).toBe("goes on");
    expect(verdict({ state: "receiving", nowMs: 10_001 })).toMatch(/^upstream_timeout: .*10000 ms.*partsWaitMs/);
  });

  test("that waits its turn is not blamed for its silence", () => {
    expect(verdict({ state: "queued", nowMs: 599_000 })).toBe("goes on");
  });

  test.each(jobStates.filter((state) => state !== "ended"))("that is %s has jobTotalMs in all", (state) => {
    const job = { state, progressAtMs: 600_000 };
    expect(verdict({ ...job, nowMs: 600_000 })).toBe("goes on");
    expect(verdict({ ...job, nowMs: 600_001 })).toMatch(/^upstream_timeout: .*600000 ms.*jobTotalMs/);
  });

  test("has no longer than its gateway said, and no longer than this agent allows", () => {
    const job = { state: "running", progressAtMs: 599_000 } as const;
    expect(verdict({ ...job, nowMs: 1_001, remainingMs: 1_000 })).toMatch(/^upstream_timeout: .*1000 ms/);
    expect(verdict({ ...job, nowMs: 600_001, remainingMs: 9_000_000 })).toMatch(/^upstream_timeout: .*600000 ms/);
  });

  test("that is over has all the time there is", () => {
    expect(verdict({ state: "ended", nowMs: 9_000_000 })).toBe("goes on");
  });
});
