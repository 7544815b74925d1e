import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Schedule } from "../../../services/agent/jobs/schedule.ts";

interface World {
  slots: number;
  readonly queueMax: number;
  /** In the order in which they came; those whose body has arrived are ready. */
  waiting: { job: string; ready: boolean }[];
  running: string[];
  submitted: number;
}

/** What the schedule should say at every step, told in the plainest way. */
function startable(world: World): string[] {
  const free = Math.max(0, world.slots - world.running.length);
  const start = world.waiting.filter(({ ready }) => ready).slice(0, free);
  world.waiting = world.waiting.filter((each) => !start.includes(each));
  world.running.push(...start.map(({ job }) => job));
  return start.map(({ job }) => job);
}

function check(world: World, schedule: Schedule): void {
  expect(schedule.running).toBe(world.running.length);
  expect(schedule.queued).toBe(world.waiting.length);
  expect([...schedule.places()]).toEqual(world.waiting.map(({ job }, place) => [job, place + 1]));
}

class Submit implements fc.Command<World, Schedule> {
  readonly ready: boolean;
  constructor(ready: boolean) {
    this.ready = ready;
  }
  check = () => true;
  run(world: World, schedule: Schedule): void {
    const job = `job-${world.submitted++}`;
    const { slots, queueMax, running, waiting } = world;
    const fits = waiting.length < queueMax && running.length <= slots;
    const isFull = waiting.length >= queueMax && running.length >= slots;
    const submitted = schedule.submit(job, { ready: this.ready });
    if (fits) expect(submitted.outcome).toBe("taken");
    if (isFull) expect(submitted.outcome).toBe("full");
    if (submitted.outcome === "taken") {
      world.waiting.push({ job, ready: this.ready });
      expect(submitted.start).toEqual(startable(world));
    }
    check(world, schedule);
  }
  toString = () => `submit(${this.ready ? "ready" : "receiving"})`;
}

/** Picks one of the jobs that there are; a number beyond them picks one that is not there. */
class Touch implements fc.Command<World, Schedule> {
  readonly what: "makeReady" | "remove";
  readonly pick: number;
  constructor(what: "makeReady" | "remove", pick: number) {
    this.what = what;
    this.pick = pick;
  }
  check = () => true;
  run(world: World, schedule: Schedule): void {
    const job = [...world.running, ...world.waiting.map((each) => each.job)][this.pick] ?? "nobody";
    const started = schedule[this.what](job);
    if (this.what === "remove") {
      world.running = world.running.filter((each) => each !== job);
      world.waiting = world.waiting.filter((each) => each.job !== job);
    } else for (const each of world.waiting) each.ready ||= each.job === job;
    expect(started).toEqual(startable(world));
    check(world, schedule);
  }
  toString = () => `${this.what}(${this.pick})`;
}

class Resize implements fc.Command<World, Schedule> {
  readonly slots: number;
  constructor(slots: number) {
    this.slots = slots;
  }
  check = () => true;
  run(world: World, schedule: Schedule): void {
    world.slots = this.slots;
    const started = schedule.resize(this.slots);
    expect(started).toEqual(startable(world));
    expect(schedule.slots).toBe(this.slots);
    check(world, schedule);
  }
  toString = () => `resize(${this.slots})`;
}

describe("a schedule", () => {
  test("starts the first that are ready, never more than it has slots, and queues no more than its bound", () => {
    const commands = [
      fc.boolean().map((ready) => new Submit(ready)),
      fc.nat(12).map((pick) => new Touch("remove", pick)),
      fc.nat(12).map((pick) => new Touch("makeReady", pick)),
      fc.integer({ min: 1, max: 4 }).map((slots) => new Resize(slots)),
    ];
    const sizes = fc.record({ slots: fc.integer({ min: 1, max: 4 }), queueMax: fc.nat(5) });
    fc.assert(
      fc.property(sizes, fc.commands(commands, { maxCommands: 60 }), (size, steps) => {
        const model: World = { ...size, waiting: [], running: [], submitted: 0 };
        fc.modelRun(() => ({ model, real: new Schedule(size) }), steps);
      }),
      { numRuns: 500 },
    );
  });

  test("takes into a queue that is empty, also when a slower runtime left more running than there are slots", () => {
    const schedule = new Schedule({ slots: 3, queueMax: 2 });
    for (const job of ["a", "b", "c"]) schedule.submit(job, { ready: true });
    schedule.resize(1);
    expect(["d", "e", "f"].map((job) => schedule.submit(job, { ready: true }).outcome)).toEqual([
      "taken",
      "taken",
      "full",
    ]);
    expect([schedule.running, schedule.queued]).toEqual([3, 2]);
  });

  test("without a queue takes a body in parts as long as a slot is free for it", () => {
    const schedule = new Schedule({ slots: 1, queueMax: 0 });
    expect(schedule.submit("large", { ready: false })).toEqual({ outcome: "taken", start: [] });
    expect(schedule.makeReady("large")).toEqual(["large"]);
  });
});
