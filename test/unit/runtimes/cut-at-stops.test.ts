import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { cutAtStops } from "../../../services/agent/runtimes/adjust-answer.ts";
import type { EmitEvents } from "../../../services/agent/runtimes/runtime.ts";
import { emitEach, emittedBy } from "../../harness/ask-runtime.ts";

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
