import { expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import { Breakers, contradictionsMax } from "../../../services/gateway/routing/breakers.ts";

const timing = timingAt(1);

function claims() {
  const all = new Breakers(timing);
  /** In each of so many presences the machine tells a free slot and then says busy. */
  const contradict = (presences: number, nowMs = 0): boolean[] =>
    Array.from({ length: presences }, () => {
      all.reported("attic");
      return all.contradicted("attic", "llama3", nowMs);
    });
  return { all, contradict };
}

test("a machine that contradicts as many presences as contradictionsMax is asked last for a while, and told once", () => {
  const { all, contradict } = claims();
  expect(contradict(contradictionsMax + 2)).toEqual([false, false, true, false, false]);
  expect(all.avoids("attic", "llama3", timing.breakerOpenMs - 1)).toBe("contradicts");
  expect(all.avoidedOn("attic", 0)).toEqual({ broken: [], contradicted: ["llama3"] });
  expect(all.avoids("attic", "llama3", timing.breakerOpenMs)).toBeUndefined();
});

test("a machine that contradicts itself again after that is asked last again at once", () => {
  const { all, contradict } = claims();
  contradict(contradictionsMax);
  contradict(1, timing.breakerOpenMs);
  expect(all.avoids("attic", "llama3", timing.breakerOpenMs + 1)).toBe("contradicts");
});

test("a busy has no room until the next presence, and many of one presence count once", () => {
  const { all } = claims();
  for (let times = 0; times < 10; times += 1) all.contradicted("attic", "llama3", 0);
  expect([all.isBusy("attic", "llama3"), all.isBusy("attic", "qwen"), all.isBusy("cellar", "llama3")]).toEqual([
    true,
    false,
    false,
  ]);
  expect(all.avoids("attic", "llama3", 0)).toBeUndefined();
  all.reported("attic");
  expect(all.isBusy("attic", "llama3")).toBe(false);
});

test("a machine that takes a job in between, as one does that others fill, is not held to have contradicted itself", () => {
  const { all, contradict } = claims();
  for (let times = 0; times < 10; times += 1) {
    contradict(contradictionsMax - 1);
    all.took("attic", "llama3");
  }
  expect(all.avoids("attic", "llama3", 0)).toBeUndefined();
});
