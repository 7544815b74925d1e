import { expect, test } from "vitest";
import { RefusedEfforts, refusedEffortsMax, refusedForMs } from "../../../services/gateway/requests/refused-efforts.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const asking = (modelId: string, value: string) => ({ targets: [{ modelId }], effort: { value } });

test("a refused effort is remembered for its model alone, and for a minute", () => {
  const clock = new TurnableClock();
  const efforts = new RefusedEfforts(clock);
  efforts.note(asking("llama3", "high"));
  expect(efforts.has(asking("llama3", "high"))).toBe(true);
  expect([efforts.has(asking("llama3", "none")), efforts.has(asking("qwen3", "high"))]).toEqual([false, false]);
  clock.advance(refusedForMs);
  expect(efforts.has(asking("llama3", "high"))).toBe(false);
});

test("remembered refusals have a bound", () => {
  const efforts = new RefusedEfforts(new TurnableClock());
  for (let place = 0; place <= refusedEffortsMax; place += 1) efforts.note(asking(`model-${place}`, "high"));
  expect([efforts.has(asking("model-0", "high")), efforts.has(asking(`model-${refusedEffortsMax}`, "high"))]).toEqual([
    false,
    true,
  ]);
});
