import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { cutAtStops, StopCutter } from "../../../services/agent/runtimes/adjust-answer.ts";
import type { EmitEvents } from "../../../services/agent/runtimes/runtime.ts";
import { emitEach, emittedBy } from "../../harness/ask-runtime.ts";
import * as fc from "fast-check";

/** About ten tokens. */
const prompt = "x".repeat(40);

/** What is left of an answer, and whether the runtime was let go of before its end. */
async function cut(stop: readonly string[], events: readonly AnswerEvent[]) {
  let wasRead = false;
  const read = (async function* () {
    for (const event of events) yield [event];
    wasRead = true;
  })();
  const run = (emit: EmitEvents): Promise<void> => emitEach(read, emit);
  const left = await emittedBy((emit) => cutAtStops({ prompt, stop: [...stop] }, run, emit));
  return { left, wasRead };
}

const words = (...texts: string[]): AnswerEvent[] => texts.map((text) => ({ kind: "text", text }));
const end: AnswerEvent[] = [
  { kind: "finish", reason: "stop" },
  { kind: "usage", promptTokens: 15, completionTokens: 8 },
];

test("an answer with stop strings ends exactly before the first, and nothing more is read of it", async () => {
  const { left, wasRead } = await cut(
    ["mma del"],
    [...words("alpha", " beta", " gamma", " delta", " epsilon"), ...end],
  );
  expect(left).toEqual([
    ...words("alpha", " beta", " ga"),
    { kind: "finish", reason: "stop", stop: "mma del" },
    { kind: "usage", promptTokens: 10, completionTokens: 4 },
  ]);
  expect(wasRead).toBe(false);
});

test("an answer with stop strings is whole where none of them comes, also what could have been the beginning of one", async () => {
  const { left, wasRead } = await cut(["mma del"], [...words("alpha", " gamma"), ...end]);
  expect(left).toEqual([...words("alpha", " ga", "mma"), ...end]);
  expect(wasRead).toBe(true);
});

test("an answer with stop strings does not end for what the model only thinks, or calls a tool with", async () => {
  const events: AnswerEvent[] = [
    { kind: "reasoning", text: "beta" },
    { kind: "tool-call-start", index: 0, name: "f" },
    { kind: "tool-call-delta", index: 0, arguments: '{"a":"beta"}' },
    ...end,
  ];
  expect((await cut(["beta"], events)).left).toEqual(events);
});

test("an answer with stop strings keeps its last text when the run, as it ends, emits once more", async () => {
  const run = async (emit: EmitEvents): Promise<void> => {
    try {
      await emit(words("alpha beta"));
    } finally {
      await emit(words("held back"));
    }
  };
  const left = await emittedBy((emit) => cutAtStops({ prompt, stop: [" beta"] }, run, emit));
  expect(left.slice(0, 2)).toEqual([...words("alpha"), { kind: "finish", reason: "stop", stop: " beta" }]);
});

function textBefore(stops: readonly string[], pieces: readonly string[]): string {
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
  expect(textBefore(["bac", "a"], ["bac"])).toBe("b");
  expect(textBefore(["ba", "a"], ["xba"])).toBe("x");
});

test("a stop cutter cuts at the same place however the text comes in pieces", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 4 });
  const texts = fc.array(word, { maxLength: 12 });
  const stops = fc.array(word, { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(texts, stops, (pieces, chosen) => {
      const letters = pieces.join("").split("");
      expect(textBefore(chosen, pieces)).toBe(textBefore(chosen, letters));
      expect(textBefore(chosen, [letters.join("")])).toBe(textBefore(chosen, letters));
    }),
    { numRuns: 1_000 },
  );
});
