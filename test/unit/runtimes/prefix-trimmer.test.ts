import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { EmitEvents } from "../../../services/agent/runtimes/runtime.ts";
import { emittedBy } from "../../harness/ask-runtime.ts";
import { echoCharactersMin, PrefixTrimmer, trimPrefix } from "../../../services/agent/runtimes/adjust-answer.ts";

function text(piece: string): AnswerEvent {
  return { kind: "text", text: piece };
}

function running(...batches: (readonly AnswerEvent[])[]) {
  return async (emit: EmitEvents): Promise<void> => {
    for (const events of batches) await emit(events);
  };
}

function trimmed(prefix: string, ...events: AnswerEvent[]): AnswerEvent[] {
  const trimmer = new PrefixTrimmer(prefix);
  return [...events.flatMap((event) => trimmer.push([event])), ...trimmer.end()];
}

function textOf(prefix: string, pieces: readonly string[]): string {
  const events = trimmed(prefix, ...pieces.map(text));
  return events.map((event) => (event.kind === "text" ? event.text : "")).join("");
}

test("a prefilled beginning that is short is left alone: the model may well say the same once more", async () => {
  const said = (prefix: string) =>
    emittedBy((emit) => trimPrefix(prefix, running([text(prefix), text(" and on")]), emit));
  expect(await said("[")).toEqual([text("["), text(" and on")]);
  expect(await said("x".repeat(echoCharactersMin))).toEqual([text(" and on")]);
});

test("a prefilled beginning that was held back is said when the answer fails", async () => {
  async function failing(emit: EmitEvents): Promise<void> {
    await emit([text("Once upon a time there")]);
    throw new Error("broken");
  }
  const said: AnswerEvent[] = [];
  const reading = trimPrefix("Once upon a time there was a", failing, (events) => void said.push(...events));
  await expect(reading).rejects.toThrow("broken");
  expect(said).toEqual([text("Once upon a time there")]);
});

test("a prefilled beginning that the runtime says once more is dropped, whole or in pieces", () => {
  expect(textOf("Once upon", ["Once upon a time"])).toBe(" a time");
  expect(textOf("Once upon", ["On", "ce ", "upon", " a time"])).toBe(" a time");
});

test("a prefilled beginning holds back only what could still be it", () => {
  const trimmer = new PrefixTrimmer("abc");
  expect(trimmer.push([text("a")])).toEqual([]);
  expect(trimmer.push([text("x")])).toEqual([text("a"), text("x")]);
  expect(trimmer.push([text("abc")])).toEqual([text("abc")]);
});

test("a prefilled beginning does not swallow a short answer that begins like it", () => {
  const finish: AnswerEvent = { kind: "finish", reason: "stop" };
  expect(trimmed("Once upon", text("Once"), finish)).toEqual([text("Once"), finish]);
  expect(trimmed("Once upon", text("Once"))).toEqual([text("Once")]);
});

test("a prefilled beginning lets thoughts pass, which come before it", () => {
  const thought: AnswerEvent = { kind: "reasoning", text: "Once upon" };
  expect(trimmed("Once upon", thought, text("Once upon a"))).toEqual([thought, text(" a")]);
});

test("a prefilled beginning takes with it what was said of its tokens", () => {
  const logprob = (token: string) => ({ token, logprob: -0.1, bytes: null, top_logprobs: [] });
  const said: AnswerEvent = { kind: "text", text: "Once upon a", logprobs: ["Once", " upon", " a"].map(logprob) };
  expect(trimmed("Once upon", said)).toEqual([{ kind: "text", text: " a", logprobs: [logprob(" a")] }]);
});

test("a prefilled beginning is dropped the same however the answer is cut", () => {
  const prefix = "abcab";
  fc.assert(
    fc.property(fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 4 })), (pieces) => {
      const whole = pieces.join("");
      const expected = whole.startsWith(prefix) ? whole.slice(prefix.length) : whole;
      expect(textOf(prefix, pieces)).toBe(expected);
    }),
    { numRuns: 300 },
  );
});
