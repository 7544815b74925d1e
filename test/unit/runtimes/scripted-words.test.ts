import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { countWords } from "../../../services/agent/runtimes/scripted/scripted.ts";

test("the words of texts are counted, in none of which one goes on that another began", async () => {
  expect(await countWords(["", " one  two\n", "three", "four\tfive "])).toBe(5);
  expect(await countWords([])).toBe(0);
});

test("the words of many megabytes are counted in turns with others, and none is counted twice", async () => {
  const counting = countWords(["words ".repeat(1_000_000), "w".repeat(3_000_000)]);
  const others = { turns: 0, wanted: true };
  const turning = (async () => {
    for (; others.wanted; others.turns += 1) await nextTurn();
  })();
  expect(await counting).toBe(1_000_001);
  others.wanted = false;
  await turning;
  expect(others.turns).toBeGreaterThan(6);
});
