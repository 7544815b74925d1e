import { expect, test } from "vitest";
import { sleep } from "#shared/process/clock.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

test("runs due timers in order of time, then of setting, each at its own time", () => {
  const clock = new TurnableClock();
  const runs: string[] = [];
  const note = (name: string) => () => void runs.push(`${name} at ${clock.now()}`);
  clock.after(30, note("late"));
  clock.after(10, note("first"));
  clock.after(10, note("second"));
  clock.after(31, note("never"));
  clock.advance(30);
  expect(runs).toEqual(["first at 10", "second at 10", "late at 30"]);
  expect(clock.timersWaiting).toBe(1);
});

test("runs what a timer sets anew, when it falls due in the same advance", () => {
  const clock = new TurnableClock();
  const runs: number[] = [];
  clock.after(10, () => clock.after(10, () => void runs.push(clock.now())));
  clock.advance(25);
  expect(runs).toEqual([20]);
});

test("repeats an interval until it is cancelled, also by itself", () => {
  const clock = new TurnableClock();
  const runs: number[] = [];
  const timer = clock.every(10, () => {
    runs.push(clock.now());
    if (runs.length === 3) timer.cancel();
  });
  clock.advance(100);
  expect(runs).toEqual([10, 20, 30]);
  expect(clock.timersWaiting).toBe(0);
});

test("wall time advances alike and can be set apart, and no timer notices", () => {
  const clock = new TurnableClock({ nowMs: 5, wallMs: 1_000 });
  let ran = false;
  clock.after(10, () => (ran = true));
  clock.setWall(500_000);
  expect({ now: clock.now(), wall: clock.wall(), ran }).toEqual({ now: 5, wall: 500_000, ran: false });
  clock.advance(10);
  expect({ now: clock.now(), wall: clock.wall(), ran }).toEqual({ now: 15, wall: 500_010, ran: true });
});

test("advances through code that awaits between its timers", async () => {
  const clock = new TurnableClock();
  const wokenAt: number[] = [];
  const sleeper = (async () => {
    for (let round = 0; round < 3; round += 1) {
      await sleep(clock, 10);
      wokenAt.push(clock.now());
    }
  })();
  await clock.advanceAwaiting(30);
  await sleeper;
  expect(wokenAt).toEqual([10, 20, 30]);
});
