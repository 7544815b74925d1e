import { expect, test } from "vitest";
import { RefusedEfforts, refusedEffortsMax, refusedForMs } from "../../../services/gateway/requests/refused-efforts.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

test("a refused effort is remembered for its model alone, and for a minute", () => {
  const clock = new TurnableClock();
  const efforts = new RefusedEfforts(clock);
  efforts.note("llama3", "high");
  expect(efforts.has("llama3", "high")).toBe(true);
  expect([efforts.has("llama3", "none"), efforts.has("qwen3", "high")]).toEqual([false, false]);
  clock.advance(refusedForMs);
  expect(efforts.has("llama3", "high")).toBe(false);
});

test("remembered refusals have a bound", () => {
  const efforts = new RefusedEfforts(new TurnableClock());
  for (let place = 0; place <= refusedEffortsMax; place += 1) efforts.note(`model-${place}`, "high");
  expect([efforts.has("model-0", "high"), efforts.has(`model-${refusedEffortsMax}`, "high")]).toEqual([false, true]);
});
