import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import {
  loadOf,
  secondsUntilRoom,
  type Speed,
  MeasuredSpeeds,
  speedsKeptMax,
} from "../../../services/gateway/fleet/expected-time.ts";
import { PendingJobs } from "../../../services/gateway/fleet/pending-jobs.ts";
import { speed } from "./candidates-of-a-model.ts";
import { bootAt, presenceOf } from "./machines-of-a-fleet.ts";

function ended(timings: Partial<EndPayload["timings"]>, completionTokens?: number): EndPayload {
  return {
    finishReason: "stop",
    usage: completionTokens === undefined ? null : { promptTokens: 1, completionTokens },
    timings: { queuedMs: 0, firstTokenMs: 100, totalMs: 1_000, ...timings },
  };
}

describe("the speed of a machine with a model", () => {
  test("is not known before its first answer, and not of another model or machine", () => {
    const speeds = new MeasuredSpeeds();
    expect(speeds.of("attic", "llama3", 0)).toBeUndefined();
    speeds.ended("attic", "llama3", ended({}, 50), 0);
    expect(speeds.of("attic", "llama3", 0)).toMatchObject({ firstTokenMs: 100, restMs: 900, answerTokens: 50 });
    expect(speeds.of("attic", "qwen3", 0)).toBeUndefined();
    expect(speeds.of("cellar", "llama3", 0)).toBeUndefined();
  });

  test("is without the time that a job waited in the queue", () => {
    const speeds = new MeasuredSpeeds();
    speeds.ended("attic", "llama3", ended({ queuedMs: 5_000, firstTokenMs: 5_100, totalMs: 6_000 }, 50), 0);
    expect(speeds.of("attic", "llama3", 0)).toMatchObject({ firstTokenMs: 100, restMs: 900 });
  });

  test("follows the latest answers within a few, and one alone does not turn it over", () => {
    const speeds = new MeasuredSpeeds();
    const first = (): number => speeds.of("attic", "llama3", 0)?.firstTokenMs ?? 0;
    for (let answer = 0; answer < 20; answer += 1) speeds.ended("attic", "llama3", ended({ firstTokenMs: 100 }), 0);
    speeds.ended("attic", "llama3", ended({ firstTokenMs: 1_000 }), 0);
    expect(first()).toBeLessThan(400);
    for (let answer = 0; answer < 8; answer += 1) speeds.ended("attic", "llama3", ended({ firstTokenMs: 1_000 }), 0);
    expect(first()).toBeGreaterThan(900);
  });

  test("is measured anew when nothing was for ten minutes: a model may have been loading", () => {
    const speeds = new MeasuredSpeeds();
    speeds.ended("attic", "llama3", ended({ firstTokenMs: 60_000, totalMs: 61_000 }), 0);
    expect(speeds.of("attic", "llama3", 600_000)).toBeDefined();
    expect(speeds.of("attic", "llama3", 600_001)).toBeUndefined();
    speeds.ended("attic", "llama3", ended({}), 700_000);
    expect(speeds.of("attic", "llama3", 700_000)?.firstTokenMs).toBe(100);
  });

  test("is a number that can be reckoned with, whatever a machine says of itself", () => {
    const number = fc.oneof(fc.double(), fc.constantFrom(-1, 0, Infinity, Number.MAX_VALUE));
    fc.assert(
      fc.property(number, fc.option(number), number, fc.nat(), (queuedMs, firstTokenMs, totalMs, tokens) => {
        const speeds = new MeasuredSpeeds();
        for (let answer = 0; answer < 3; answer += 1) {
          speeds.ended("attic", "llama3", ended({ queuedMs, firstTokenMs, totalMs }, tokens), 0);
        }
        const { firstTokenMs: toFirst, restMs, answerTokens } = speeds.of("attic", "llama3", 0) ?? speed(-1);
        for (const each of [toFirst, restMs, answerTokens]) {
          expect(each).toBeGreaterThanOrEqual(0);
          expect(each).toBeLessThanOrEqual(10_000_000);
        }
      }),
    );
  });

  test("is remembered for so many at most, and those that answered lately are among them", () => {
    const speeds = new MeasuredSpeeds();
    for (let model = 0; model <= speedsKeptMax; model += 1) speeds.ended("attic", `model-${model}`, ended({}), 0);
    expect(speeds.size).toBe(speedsKeptMax);
    expect(speeds.of("attic", "model-0", 0)).toBeUndefined();
    expect(speeds.of("attic", "model-1", 0)).toBeDefined();
  });
});

describe("jobs placed since the last presence", () => {
  const attic = { machine: "attic", epoch: bootAt(0) };

  test("counts until the machine tells its load, and what it had counted is taken off when it ends", () => {
    const pending = new PendingJobs();
    const [one, two, three] = [pending.placed(attic), pending.placed(attic), pending.placed(attic)];
    one.accepted();
    two.accepted();
    two.ended();
    expect(pending.of(attic)).toBe(2);
    pending.told("attic");
    expect(pending.of(attic)).toBe(1);
    three.ended();
    expect(pending.of(attic)).toBe(0);
    one.ended();
    expect(pending.of(attic)).toBe(-1);
    pending.told("attic");
    expect(pending.of(attic)).toBe(0);
  });

  test("counts on while the machine has not accepted it, since no presence can have it in it", () => {
    const pending = new PendingJobs();
    const job = pending.placed(attic);
    pending.told("attic");
    expect(pending.of(attic)).toBe(1);
    job.accepted();
    expect(pending.of(attic)).toBe(1);
    pending.told("attic");
    expect(pending.of(attic)).toBe(0);
  });

  test("is forgotten with the boot that had it", () => {
    const pending = new PendingJobs();
    const next = { ...attic, epoch: bootAt(1) };
    const job = pending.placed(attic);
    expect(pending.of(next)).toBe(0);
    pending.placed(next);
    job.ended();
    expect([pending.of(attic), pending.of(next)]).toEqual([0, 1]);
  });
});

describe("a client that finds all machines full is told when there is room again", () => {
  const machine = (slots: number, queued: number, measured?: Speed) => ({
    load: loadOf(presenceOf("attic", { slots, running: slots, queued, queueMax: 4 }), 0),
    speed: measured,
  });

  test.each<[string, ReturnType<typeof machine>[], number | undefined]>([
    ["by how long answers take", [machine(1, 4, speed(8_000))], 8],
    ["and how many run at once", [machine(4, 4, speed(8_000))], 2],
    ["on all machines together", [machine(1, 4, speed(8_000)), machine(1, 4, speed(8_000))], 4],
    ["as far as they were measured", [machine(1, 4, speed(8_000)), machine(1, 4)], 8],
    ["but not sooner than in a second", [machine(8, 4, speed(100))], 1],
    ["nor later than in a minute", [machine(1, 4, speed(600_000))], 60],
    ["and nothing is made up where nothing was measured", [machine(1, 4)], undefined],
  ])("%s", (_, machines, seconds) => {
    expect(secondsUntilRoom(machines)).toBe(seconds);
  });
});
