import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { AskTogether } from "../../../../services/gateway/limits/ask-together.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

/** Whoever answers says each number back, when the test lets it. */
function open({ askedMax = 100 } = {}) {
  const clock = new TurnableClock();
  const questions: { readonly asked: readonly number[]; readonly held: PromiseWithResolvers<void> }[] = [];
  const together = new AskTogether<number, string>({
    askedMax,
    waitMs: 2,
    clock,
    ask: async (asked) => {
      const held = Promise.withResolvers<void>();
      questions.push({ asked, held });
      await held.promise;
      return asked.map(String);
    },
  });
  return {
    clock,
    asked: () => questions.map(({ asked }) => asked),
    ask: (...numbers: number[]) => Promise.allSettled(numbers.map((number) => together.ask(number))),
    answer: (at: number) => questions[at]?.held.resolve(),
    fail: (at: number) => questions[at]?.held.reject(new Error(`question ${at} failed`)),
  };
}

const answers = (...numbers: number[]) => numbers.map((number) => ({ status: "fulfilled", value: String(number) }));
const failures = (count: number, message: string) =>
  Array.from({ length: count }, () => ({ status: "rejected", reason: expect.objectContaining({ message }) }));

describe("demands that come together", () => {
  test("are one question, in the order in which they came, and each has its own answer", async () => {
    const { ask, asked, answer } = open();
    const [some, others] = [ask(3, 1), ask(2)];
    await nextTurn();
    expect(asked()).toEqual([[3, 1, 2]]);
    answer(0);
    expect([await some, await others]).toEqual([answers(3, 1), answers(2)]);
  });

  test("go in the next question when one is under way, which goes as soon as that is answered", async () => {
    const { ask, asked, answer } = open();
    const first = ask(1);
    await nextTurn();
    const next = [ask(2)];
    await nextTurn();
    next.push(ask(3));
    await nextTurn();
    expect(asked()).toEqual([[1]]);
    answer(0);
    await first;
    await nextTurn();
    expect(asked()).toEqual([[1], [2, 3]]);
    answer(1);
    expect(await Promise.all(next)).toEqual([answers(2), answers(3)]);
  });

  test("wait for a store that is far no longer than a moment", async () => {
    const { clock, ask, asked, answer } = open();
    const all = [ask(1)];
    await nextTurn();
    all.push(ask(2), ask(3));
    clock.advance(1);
    await nextTurn();
    expect(asked()).toEqual([[1]]);
    clock.advance(1);
    await nextTurn();
    expect(asked()).toEqual([[1], [2, 3]]);
    answer(1);
    answer(0);
    expect((await Promise.all(all)).flat()).toEqual(answers(1, 2, 3));
    expect(clock.timersWaiting).toBe(0);
  });

  test("are several questions when they are many", async () => {
    const { ask, asked, answer } = open({ askedMax: 2 });
    const all = ask(1, 2, 3, 4, 5);
    await nextTurn();
    expect(asked()).toEqual([[1, 2], [3, 4], [5]]);
    for (const at of [0, 1, 2]) answer(at);
    expect(await all).toEqual(answers(1, 2, 3, 4, 5));
  });

  test("fail together, with those that waited for them, and nobody after them", async () => {
    const { clock, ask, asked, answer, fail } = open();
    const going = ask(1, 2);
    await nextTurn();
    const waiting = ask(3);
    fail(0);
    expect(await going).toEqual(failures(2, "question 0 failed"));
    expect(await waiting).toEqual(failures(1, "question 0 failed"));
    const after = ask(4);
    await nextTurn();
    expect(asked()).toEqual([[1, 2], [4]]);
    answer(1);
    expect(await after).toEqual(answers(4));
    clock.advance(10);
    await nextTurn();
    expect(asked()).toHaveLength(2);
    expect(clock.timersWaiting).toBe(0);
  });
});
