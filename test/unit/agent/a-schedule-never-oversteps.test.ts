import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Schedule } from "../../../services/agent/jobs/schedule.ts";

interface Waiting {
  readonly job: string;
  readonly lane: string;
  ready: boolean;
}

/** One sender only, so that within a lane first come is first served. */
interface World {
  readonly slots: Map<string, number>;
  readonly queueMax: number;
  /** In the order in which they came; those whose body has arrived are ready. */
  waiting: Waiting[];
  running: { readonly job: string; readonly lane: string }[];
  submitted: number;
}

const lanes = ["a", "b"];
const sender = "ann";
type Change = "ready" | "unready" | "remove";

function freeIn(world: World, lane: string): number {
  const running = world.running.filter((each) => each.lane === lane).length;
  return Math.max(0, (world.slots.get(lane) ?? 0) - running);
}

/** What the schedule should start at every step, told in the plainest way. */
function startable(world: World): Set<string> {
  const started = new Set<string>();
  for (const lane of lanes) {
    const start = world.waiting.filter((each) => each.lane === lane && each.ready).slice(0, freeIn(world, lane));
    world.waiting = world.waiting.filter((each) => !start.includes(each));
    world.running.push(...start);
    for (const { job } of start) started.add(job);
  }
  return started;
}

function check(world: World, schedule: Schedule): void {
  expect(schedule.running.size).toBe(world.running.length);
  expect(schedule.waiting.size).toBe(world.waiting.length);
  for (const lane of lanes) {
    const waiting = world.waiting.filter((each) => each.lane === lane);
    expect(schedule.runningIn(lane)).toBe(world.running.filter((each) => each.lane === lane).length);
    expect(waiting.map(({ job }) => schedule.positions().get(job))).toEqual(waiting.map((_, place) => place + 1));
  }
}

/** Submits a job, which is refused when it would wait behind more than the bound. */
function submitOne(world: World, schedule: Schedule, { lane, ready }: { lane: string; ready: boolean }): void {
  const joined: Waiting = { job: `job-${world.submitted++}`, lane, ready };
  const all = [...world.waiting, joined];
  const backlog = lanes
    .map((each) => Math.max(0, all.filter((waiting) => waiting.lane === each).length - freeIn(world, each)))
    .reduce((sum, each) => sum + each);
  const submitted = schedule.submit(joined.job, { lane, sender, ready });
  expect(submitted === undefined).toBe(backlog > world.queueMax);
  if (submitted === undefined) return;
  world.waiting.push(joined);
  expect(new Set(submitted)).toEqual(startable(world));
}

/** Changes one of the jobs that there are; a number beyond them picks one that is not there. */
function touch(world: World, schedule: Schedule, { what, pick }: { what: Change; pick: number }): void {
  const job = [...world.running, ...world.waiting].map((each) => each.job)[pick] ?? "nobody";
  const started = what === "remove" ? schedule.remove(job) : schedule.setReady(job, what === "ready");
  if (what === "remove") {
    world.running = world.running.filter((each) => each.job !== job);
    world.waiting = world.waiting.filter((each) => each.job !== job);
  } else for (const each of world.waiting) if (each.job === job) each.ready = what === "ready";
  expect(new Set(started)).toEqual(startable(world));
}

function resize(world: World, schedule: Schedule, { lane, slots }: { lane: string; slots: number }): void {
  world.slots.set(lane, slots);
  expect(new Set(schedule.resize(lane, slots))).toEqual(startable(world));
}

function scheduleOf(lane: string, slots: number, queueMax: number): Schedule {
  const schedule = new Schedule({ queueMax });
  schedule.resize(lane, slots);
  return schedule;
}

test("a schedule starts the first that are ready, never more than a lane has slots, and queues no more than its bound", () => {
  const lane = fc.constantFrom(...lanes);
  const what = fc.constantFrom<Change>("remove", "ready", "unready");
  const step = fc.oneof(
    fc.record({ lane, ready: fc.boolean() }),
    { weight: 3, arbitrary: fc.record({ what, pick: fc.nat(12) }) },
    fc.record({ lane, slots: fc.integer({ min: 0, max: 4 }) }),
  );
  fc.assert(
    fc.property(fc.nat(5), fc.array(step, { maxLength: 60 }), (queueMax, steps) => {
      const world: World = { slots: new Map(), queueMax, waiting: [], running: [], submitted: 0 };
      const schedule = new Schedule({ queueMax });
      for (const each of steps) {
        if ("what" in each) touch(world, schedule, each);
        else if ("slots" in each) resize(world, schedule, each);
        else submitOne(world, schedule, each);
        check(world, schedule);
      }
    }),
    { numRuns: 500 },
  );
});

test("a schedule lets senders take turns: who sends one job does not wait behind all those of another", () => {
  const schedule = scheduleOf("a", 1, 20);
  const order: string[] = [];
  const submit = (job: string, from: string): void => {
    const submitted = schedule.submit(job, { lane: "a", sender: from, ready: true });
    order.push(...(submitted ?? []));
  };
  for (const job of ["ann-1", "ann-2", "ann-3", "ann-4"]) submit(job, "ann");
  for (const job of ["bob-1", "bob-2"]) submit(job, "bob");
  submit("cyd-1", "cyd");
  expect([...schedule.positions()].map(([job]) => job)).toEqual(["bob-1", "cyd-1", "ann-2", "bob-2", "ann-3", "ann-4"]);
  for (let at = 0; at < order.length; at += 1) order.push(...schedule.remove(order[at] ?? ""));
  expect(order).toEqual(["ann-1", "bob-1", "cyd-1", "ann-2", "bob-2", "ann-3", "ann-4"]);
});

test("a schedule gives nobody credit for the time in which he sent nothing", () => {
  const schedule = scheduleOf("a", 1, 20);
  const turn = (from: string) => ({ lane: "a", sender: from, ready: true });
  for (let at = 0; at < 5; at += 1) {
    schedule.submit(`early-${at}`, turn("ann"));
    schedule.remove(`early-${at}`);
  }
  for (const job of ["ann-1", "ann-2", "ann-3"]) schedule.submit(job, turn("ann"));
  for (const job of ["bob-1", "bob-2", "bob-3"]) schedule.submit(job, turn("bob"));
  const order = [...schedule.positions()].map(([job]) => job);
  expect(order).toEqual(["bob-1", "ann-2", "bob-2", "ann-3", "bob-3"]);
});

test("a schedule takes no turn from a sender for jobs that were given up", () => {
  const schedule = scheduleOf("a", 1, 50);
  const turn = (from: string) => ({ lane: "a", sender: from, ready: true });
  schedule.submit("running", turn("bob"));
  for (let at = 0; at < 20; at += 1) schedule.submit(`ann-${at}`, turn("ann"));
  for (let at = 0; at < 20; at += 1) schedule.remove(`ann-${at}`);
  for (const job of ["bob-1", "bob-2", "ann-a", "ann-b"]) schedule.submit(job, turn(job.slice(0, 3)));
  expect([...schedule.positions()].map(([job]) => job)).toEqual(["ann-a", "bob-1", "ann-b", "bob-2"]);
});

test("a schedule gives a job that could not begin the place that it had", () => {
  const schedule = scheduleOf("a", 2, 50);
  for (const job of ["a", "b", "c"]) schedule.submit(job, { lane: "a", sender, ready: true });
  schedule.resize("a", 1);
  expect(schedule.putBack("b")).toEqual([]);
  expect([...schedule.positions()]).toEqual([
    ["b", 1],
    ["c", 2],
  ]);
  expect(schedule.remove("a")).toEqual(["b"]);
});

test("a schedule is never so full of one sender's jobs that another cannot wait with his first", () => {
  const schedule = scheduleOf("a", 1, 20);
  const submit = (job: string, from: string) => schedule.submit(job, { lane: "a", sender: from, ready: true });
  for (let at = 0; at < 21; at += 1) submit(`ann-${at}`, "ann");
  expect([submit("ann-more", "ann"), submit("bob-1", "bob"), submit("bob-2", "bob")]).toEqual([
    undefined,
    [],
    undefined,
  ]);
  expect(schedule.positions().get("bob-1")).toBe(1);
  const crowd = Array.from({ length: 40 }, (_, at) => submit(`one-of-many-${at}`, `sender-${at}`));
  expect(crowd.filter((started) => started !== undefined)).toHaveLength(15);
});
