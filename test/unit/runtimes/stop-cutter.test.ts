import * as fc from "fast-check";
import { expect, test } from "vitest";
import { StopCutter } from "../../../services/agent/runtimes/adjust-answer.ts";

function cut(stops: readonly string[], pieces: readonly string[]): string {
  const cutter = new StopCutter(stops);
  return pieces.map((piece) => cutter.push(piece)).join("") + cutter.end();
}

test("a stop cutter holds back no more than could still become a stop string", () => {
  const cutter = new StopCutter(["xyz"]);
  expect([cutter.push("abx"), cutter.push("y"), cutter.push("!")]).toEqual(["ab", "", "xy!"]);
});

test("a stop cutter says nothing after the stop string", () => {
  const cutter = new StopCutter(["."]);
  cutter.push("One. Two");
  expect([cutter.stopped, cutter.push(" three"), cutter.end()]).toEqual([true, "", ""]);
});

test("a stop cutter cuts before the stop string that is complete first, even when another began earlier", () => {
  expect(cut(["bac", "a"], ["bac"])).toBe("b");
  expect(cut(["ba", "a"], ["xba"])).toBe("x");
});

test("a stop cutter cuts at the same place however the text comes in pieces", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 4 });
  const texts = fc.array(word, { maxLength: 12 });
  const stops = fc.array(word, { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(texts, stops, (pieces, chosen) => {
      const letters = pieces.join("").split("");
      expect(cut(chosen, pieces)).toBe(cut(chosen, letters));
      expect(cut(chosen, [letters.join("")])).toBe(cut(chosen, letters));
    }),
    { numRuns: 1_000 },
  );
});
