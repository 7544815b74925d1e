import { expect, test } from "vitest";
import { atTurnEnd } from "#shared/process/turn-end.ts";

const nextImmediate = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test("those that asked are called once the turn is over, in their order", async () => {
  const called: string[] = [];
  atTurnEnd({ atTurnEnd: () => void called.push("one") });
  atTurnEnd({ atTurnEnd: () => void called.push("two") });
  expect(called).toEqual([]);
  await nextImmediate();
  expect(called).toEqual(["one", "two"]);
});

test("what asks while others are called belongs to the same turn", async () => {
  const called: string[] = [];
  const broker = { atTurnEnd: () => void called.push("broker") };
  atTurnEnd({ atTurnEnd: () => atTurnEnd(broker) });
  const behind = nextImmediate().then(() => called.push("a turn later"));
  await behind;
  expect(called).toEqual(["broker", "a turn later"]);
});

test("what asks again after it was called is called again", async () => {
  let called = 0;
  const again = { atTurnEnd: () => void (called += 1) };
  atTurnEnd(again);
  await nextImmediate();
  atTurnEnd(again);
  await nextImmediate();
  expect(called).toBe(2);
});
