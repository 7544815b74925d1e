import * as fc from "fast-check";
import { expect, test } from "vitest";
import { loadOf, secondsUntilRoom } from "../../../services/gateway/routing/expected-cost.ts";
import {
  type MeasuredSpeed,
  MeasuredSpeeds,
  type Speed,
  speedsKeptMax,
} from "../../../services/gateway/routing/measured-speeds.ts";
import { PlacementMemory } from "../../../services/gateway/routing/placement-memory.ts";
import { blocksOfText } from "../../../services/gateway/routing/prompt-blocks.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { speed } from "./candidates-of-a-model.ts";
import { bootAt, presenceOf } from "./machines-of-a-fleet.ts";

/** Answers of a machine that takes 20 ms to begin, and so long for each token of a prompt. */
function measure(speeds: MeasuredSpeeds, machine: string, promptTokenMs: number, answers = 30): void {
  for (let answer = 0; answer < answers; answer += 1) {
    const promptTokens = 100 + 400 * (answer % 5);
    speeds.begun(machine, "m", { promptTokens, ms: 20 + promptTokens * promptTokenMs }, 0);
    const running = 1 + (answer % 4);
    speeds.answered(machine, "m", { running, tokens: 101, ms: 100 * (10 + 2 * (running - 1)) }, 0);
  }
}

test("the speed of a machine with a model is not known before its first answer, only in part without a second token, and not of another model or machine", () => {
  const speeds = new MeasuredSpeeds();
  expect(speeds.of("attic", "m", 0)).toBeUndefined();
  speeds.begun("attic", "m", { promptTokens: 100, ms: 100 }, 0);
  speeds.answered("attic", "m", { running: 1, tokens: 1, ms: 0 }, 0);
  expect(speeds.of("attic", "m", 0)).toEqual({ beginMs: 0, promptTokenMs: 1, answerMs: 0 });
  speeds.answered("attic", "m", { running: 1, tokens: 11, ms: 100 }, 0);
  expect(speeds.of("attic", "m", 0)).toMatchObject({ tokenMs: 10 });
  expect([speeds.of("attic", "other", 0), speeds.of("cellar", "m", 0)]).toEqual([undefined, undefined]);
});

test("the speed of a machine with a model is told apart into the begin, the prompt, the answer, and what others delay it", () => {
  const speeds = new MeasuredSpeeds();
  measure(speeds, "attic", 0.25);
  const found = speeds.of("attic", "m", 0);
  expect(found?.promptTokenMs).toBeCloseTo(0.25, 1);
  expect(found?.beginMs).toBeGreaterThan(10);
  expect(found?.beginMs).toBeLessThan(30);
  expect(found?.tokenMs).toBeGreaterThan(9);
  expect(found?.tokenMs).toBeLessThan(11);
  expect(found?.jobTokenMs).toBeGreaterThan(1);
  expect(found?.jobTokenMs).toBeLessThan(2.5);
});

test("the speed of a machine with a model does not make a machine slow that only served longer prompts", () => {
  const speeds = new MeasuredSpeeds();
  for (let answer = 0; answer < 10; answer += 1) {
    for (const [machine, promptTokens] of [
      ["short", 200],
      ["long", 8_000],
    ] as const) {
      speeds.begun(machine, "m", { promptTokens, ms: promptTokens * 0.1 }, 0);
      speeds.answered(machine, "m", { running: 1, tokens: 11, ms: 100 }, 0);
    }
  }
  expect(speeds.of("short", "m", 0)?.promptTokenMs).toBeCloseTo(0.1, 2);
  expect(speeds.of("long", "m", 0)?.promptTokenMs).toBeCloseTo(0.1, 2);
});

test("the speed of a machine with a model is not spoilt by one answer that took a minute, and follows many", () => {
  const speeds = new MeasuredSpeeds();
  measure(speeds, "attic", 0.1);
  const begins = (): number => speeds.of("attic", "m", 0)?.beginMs ?? NaN;
  speeds.begun("attic", "m", { promptTokens: 500, ms: 60_000 }, 0);
  expect(begins()).toBeLessThan(100);
  for (let answer = 0; answer < 60; answer += 1) speeds.begun("attic", "m", { promptTokens: 500, ms: 5_000 }, 0);
  expect(begins()).toBeGreaterThan(2_000);
});

test("the speed of a machine with a model is not spoilt by a first answer for which the model was loaded, where another machine shows what is usual", () => {
  const speeds = new MeasuredSpeeds();
  measure(speeds, "attic", 0.1);
  speeds.begun("cellar", "m", { promptTokens: 500, ms: 45_000 }, 0);
  const { beginMs = NaN, promptTokenMs = NaN } = speeds.of("cellar", "m", 0) ?? {};
  expect(beginMs + 500 * promptTokenMs).toBeLessThan(500);
});

test("the speed of a machine with a model is measured anew when nothing was for ten minutes: a model may have been loading", () => {
  const speeds = new MeasuredSpeeds();
  measure(speeds, "attic", 10);
  expect(speeds.of("attic", "m", 600_000)).toBeDefined();
  expect(speeds.of("attic", "m", 600_001)).toBeUndefined();
});

test("the speed of a machine with a model is made of numbers that can be reckoned with, whatever was measured", () => {
  const number = fc.double({ min: 0, max: 1e9, noNaN: true });
  fc.assert(
    fc.property(fc.array(fc.tuple(number, number, number), { minLength: 1, maxLength: 20 }), (points) => {
      const speeds = new MeasuredSpeeds();
      for (const [tokens, ms, running] of points) {
        speeds.begun("attic", "m", { promptTokens: tokens, ms }, 0);
        speeds.answered("attic", "m", { running, tokens: tokens + 2, ms }, 0);
      }
      for (const each of Object.values(speeds.of("attic", "m", 0) ?? { none: NaN })) {
        expect(each).toBeGreaterThanOrEqual(0);
        expect(each).toBeLessThan(Infinity);
      }
    }),
  );
});

test("the speed of a machine with a model is remembered for so many at most", () => {
  const speeds = new MeasuredSpeeds();
  for (let machine = 0; machine <= speedsKeptMax; machine += 1) {
    speeds.begun(`gpu-${machine}`, `model-${machine % 2}`, { promptTokens: 1, ms: 1 }, 0);
  }
  expect(speeds.size).toBeLessThanOrEqual(speedsKeptMax);
});

/** A gateway's memory, and a job of a thousand prompt tokens that it places at a time. */
function memory() {
  const clock = new TurnableClock();
  const all = new PlacementMemory(clock);
  const prompt = blocksOfText("Once upon a time. ".repeat(222), 1);
  const needs = { capability: "completion", tools: false, imageParam: undefined, promptTokens: 1_000, prompt } as const;
  const asked = { modelId: "m", needs };
  const place = (epoch = bootAt(0), how: { readonly whole?: boolean; readonly isCold?: boolean } = {}) =>
    all.placed({ machine: "attic", epoch }, { asked, slots: 4, window: 100_000, whole: false, isCold: false, ...how });
  return { clock, all, asked, place, attic: { machine: "attic", epoch: bootAt(0) } };
}

/** The speed that is measured by an answer which begins after so long, and takes so long from there. */
function measuredBy(
  { beginsMs, takesMs }: { beginsMs: number; takesMs: number },
  how: { tokens?: number; whole?: boolean; isCold?: boolean; heldBack?: boolean } = {},
): MeasuredSpeed | undefined {
  const { tokens = 101, heldBack = false, ...placed } = how;
  const { clock, all, place } = memory();
  const job = place(bootAt(0), placed);
  clock.advance(beginsMs);
  job.answering();
  clock.advance(takesMs);
  job.ended({ ...end(tokens), heldBack });
  return all.speeds.of("attic", "m", clock.now());
}

const end = (tokens: number) => ({
  end: {
    finishReason: "stop" as const,
    usage: { promptTokens: 1_000, completionTokens: tokens },
    timings: { queuedMs: 0, firstTokenMs: 0, totalMs: 0 },
  },
  receivedBytes: 4 * 101,
});

test("a machine that claims many tokens, or no time at all, seems no faster by it", () => {
  const times = { beginsMs: 500, takesMs: 1_000 };
  const [honest, boasting] = [101, 1_000_000].map((tokens) => measuredBy(times, { tokens }));
  expect(honest?.tokenMs).toBeCloseTo(10, 0);
  expect(boasting?.tokenMs).toBeGreaterThan((honest?.tokenMs ?? NaN) / 1.4);
});

test("the time of an answer in one piece is divided between prompt and answer", () => {
  const measured = measuredBy({ beginsMs: 1_500, takesMs: 0 }, { whole: true });
  const { beginMs, promptTokenMs, tokenMs = NaN } = measured ?? speed(NaN);
  expect(beginMs + 1_000 * promptTokenMs + 100 * tokenMs).toBeCloseTo(1_500, -2);
});

test("an estimate of prompts and answers comes near what machines count", () => {
  const { all, asked, place } = memory();
  for (let answer = 0; answer < 30; answer += 1) {
    place().ended({ ...end(50), end: { ...end(50).end, usage: { promptTokens: 1_500, completionTokens: 50 } } });
  }
  const { promptTokens, answerTokens } = all.workOf(asked);
  expect([promptTokens, answerTokens]).toEqual([expect.closeTo(1_500, 0), expect.closeTo(50, 0)]);
  const limited = { ...asked, needs: { ...asked.needs, answerTokensMax: 5 } };
  expect(all.workOf(limited).answerTokens).toBe(5);
});

test("a machine has cached no prompt that it did not accept", () => {
  const { all, asked, attic, place } = memory();
  place().ended();
  expect(all.workOn(attic, asked).work.cachedTokens).toBe(0);
  place().accepted();
  expect(all.workOn(attic, asked).work.cachedTokens).toBeGreaterThan(950);
});

test("a machine has cached no more of a prompt than its window holds", () => {
  const { all, asked, attic } = memory();
  all.placed(attic, { asked, slots: 4, window: 100, whole: false, isCold: false }).accepted();
  const { cachedTokens } = all.workOn(attic, asked).work;
  expect(cachedTokens).toBeGreaterThan(90);
  expect(cachedTokens).toBeLessThan(130);
});

test("an answer that its client held back tells nothing of the machine's speed after the first token", () => {
  const measured = measuredBy({ beginsMs: 500, takesMs: 600_000 }, { heldBack: true });
  expect(measured).toEqual({ beginMs: expect.any(Number), promptTokenMs: expect.any(Number) });
});

test.each([false, true])("the load of a model makes its machine no slower (in one piece: %s)", (whole) => {
  expect(measuredBy({ beginsMs: 20_000, takesMs: 1_000 }, { whole, isCold: true })).toBeUndefined();
});

test("the load of a machine is that of the gateway's own jobs, and the backlog is theirs until their first tokens", () => {
  const { all, attic, place } = memory();
  const one = place();
  one.accepted();
  const two = place();
  expect(all.openLoads.of(attic)).toMatchObject({ jobs: 2, backlogTokens: expect.closeTo(1_010, -1) });
  one.answering();
  expect(all.openLoads.of(attic)).toMatchObject({ jobs: 2, backlogTokens: expect.closeTo(10, -1) });
  one.ended();
  two.ended();
  expect(all.openLoads.of(attic)).toEqual({ jobs: 0, backlogTokens: 0 });
  expect(all.loads()).toEqual([]);
});

test("the load of a machine has the jobs of other gateways that told of them, until they tell otherwise or are gone", () => {
  const { all, attic } = memory();
  all.told("east", { loads: [{ ...attic, jobs: 3, backlogTokens: 500 }], prompts: [] });
  all.told("west", { loads: [{ ...attic, jobs: 1, backlogTokens: 0 }], prompts: [] });
  expect(all.openLoads.of(attic)).toEqual({ jobs: 4, backlogTokens: 500 });
  all.told("east", { loads: [{ ...attic, jobs: 1, backlogTokens: 0 }], prompts: [] });
  expect(all.openLoads.of(attic)).toEqual({ jobs: 2, backlogTokens: 0 });
  all.gone("west");
  expect(all.openLoads.of(attic)).toEqual({ jobs: 1, backlogTokens: 0 });
});

test("the load of a machine has the jobs that only the machine's presence counts, from gateways that tell nothing", () => {
  const { all, attic, place } = memory();
  const job = place();
  job.accepted();
  all.told("east", { loads: [{ ...attic, jobs: 2, backlogTokens: 0 }], prompts: [] });
  all.openLoads.reported(presenceOf("attic", { running: 4, queued: 1 }));
  expect(all.openLoads.of(attic).jobs).toBe(5);
  job.ended();
  expect(all.openLoads.of(attic).jobs).toBe(4);
  all.openLoads.reported(presenceOf("attic", { running: 0 }));
  expect(all.openLoads.of(attic).jobs).toBe(2);
});

test("the load of a machine counts a job that the machine has not accepted, since no presence can have it in it", () => {
  const { clock, all, attic, place } = memory();
  const job = place();
  all.openLoads.reported(presenceOf("attic", { running: 1 }));
  expect(all.openLoads.of(attic).jobs).toBe(2);
  clock.advance(1_000);
  job.accepted();
  expect(all.openLoads.of(attic).jobs).toBe(2);
  all.openLoads.reported(presenceOf("attic", { running: 1 }));
  expect(all.openLoads.of(attic).jobs).toBe(1);
});

test("the load of a machine has a job once whose accept, or whose gateway's news, comes just after the presence that counts it", () => {
  const { clock, all, attic, place } = memory();
  const job = place();
  all.openLoads.reported(presenceOf("attic", { running: 3 }));
  expect(all.openLoads.of(attic).jobs).toBe(4);
  clock.advance(50);
  job.accepted();
  expect(all.openLoads.of(attic).jobs).toBe(3);
  all.told("east", { loads: [{ ...attic, jobs: 2, backlogTokens: 0 }], prompts: [] });
  expect(all.openLoads.of(attic).jobs).toBe(3);
  all.told("east", { loads: [{ ...attic, jobs: 4, backlogTokens: 0 }], prompts: [] });
  expect(all.openLoads.of(attic).jobs).toBe(5);
});

test("the load of a machine never seems less than the gateway's own jobs, whatever the machine reports", () => {
  const { all, attic, place } = memory();
  for (const job of [place(), place(), place()]) job.accepted();
  all.openLoads.reported(presenceOf("attic", { running: 0 }));
  expect(all.openLoads.of(attic).jobs).toBe(3);
});

test("the load of a machine is forgotten with the boot that had it", () => {
  const { all, attic, place } = memory();
  const next = { ...attic, epoch: bootAt(1) };
  const job = place();
  place(bootAt(1));
  expect([all.openLoads.of(attic).jobs, all.openLoads.of(next).jobs]).toEqual([0, 1]);
  job.ended();
  expect(all.openLoads.of(next).jobs).toBe(1);
});

test("a gateway that tells others has its loads, and each prompt that it placed once", () => {
  const { all, attic, asked, place } = memory();
  let changes = 0;
  all.onChange(() => (changes += 1));
  const job = place();
  expect(all.takePrompts()).toEqual([]);
  job.accepted();
  expect(changes).toBeGreaterThan(0);
  expect(all.loads()).toEqual([{ ...attic, jobs: 1, backlogTokens: 1_000 }]);
  const prompts = all.takePrompts();
  expect([prompts.length, all.takePrompts().length]).toEqual([1, 0]);
  const other = memory();
  expect(other.all.workOn(attic, asked).work.cachedTokens).toBe(0);
  other.all.told("east", { loads: [], prompts });
  expect(other.all.workOn(attic, asked).work.cachedTokens).toBeGreaterThan(950);
});

const machine = (slots: number, measured?: Speed) => ({
  load: loadOf({ slots, queueMax: 4 }, { jobs: slots + 4, backlogTokens: 0 }),
  speed: measured,
});
const taking = (ms: number): Speed => speed(0, { answerMs: ms });

test.each<[string, ReturnType<typeof machine>[], number | undefined]>([
  ["by how long answers take", [machine(1, taking(8_000))], 8],
  ["and how many run at once", [machine(4, taking(8_000))], 2],
  ["on all machines together", [machine(1, taking(8_000)), machine(1, taking(8_000))], 4],
  ["as far as they were measured", [machine(1, taking(8_000)), machine(1)], 8],
  ["but not sooner than in a second", [machine(8, taking(100))], 1],
  ["nor later than in a minute", [machine(1, taking(600_000))], 60],
  ["and nothing is made up where nothing was measured", [machine(1)], undefined],
])("a client that finds all machines full is told when there is room again %s", (_, machines, seconds) => {
  expect(secondsUntilRoom(machines)).toBe(seconds);
});
