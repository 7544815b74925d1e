import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { AlikeChunks } from "../../../services/agent/runtimes/openai/alike-chunks.ts";
import { OpenAiChatAnswer } from "../../../services/agent/runtimes/openai/openai-chat-answer.ts";
import { anyEvents, anyWords } from "./any-chunks.ts";

const options = {
  choices: 1,
  parallelToolCalls: true,
  topLogprobs: 0,
  needsLogprobs: false,
  dropsUnreadableCalls: false,
};

/** What an answer of these events says, and the fault that ends it. */
function said(events: readonly string[], parseAll: boolean): { said: AnswerEvent[]; fault: string | undefined } {
  const told: AnswerEvent[] = [];
  const answer = new OpenAiChatAnswer(options);
  try {
    for (const [at, data] of events.entries()) {
      // A name that means nothing keeps an event out of the fast lane.
      answer.read({ kind: "event", name: parseAll ? `parsed ${at}` : "", data }, told);
    }
  } catch (error) {
    return { said: told, fault: Fault.from(error).message };
  }
  return { said: told, fault: undefined };
}

describe("chunks that are alike", () => {
  test("say what parsing each of them says, whatever a runtime sends", () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        expect(said(events, false)).toEqual(said(events, true));
      }),
      { numRuns: 3_000 },
    );
  });

  test("say it also with any bytes in the place of the text", () => {
    fc.assert(
      fc.property(fc.array(anyWords, { minLength: 1, maxLength: 6 }), (texts) => {
        const raw = texts.map((text) => `{"choices":[{"index":0,"delta":{"content":"${text}"}}]}`);
        const events = [
          ...["a", "b", "c"].map((content) => JSON.stringify({ choices: [{ index: 0, delta: { content } }] })),
          ...raw,
        ];
        expect(said(events, false)).toEqual(said(events, true));
      }),
      { numRuns: 3_000 },
    );
  });

  test.each([
    ["tight", (text: string) => `{"choices":[{"index":0,"delta":{"content":"${text}"}}]}`],
    ["with spaces", (text: string) => `{"choices": [{"index": 0, "delta": {"content": "${text}"}}]}`],
  ])("are known after two of them, written %s", (_, written) => {
    const alike = new AlikeChunks();
    for (const text of ["one", "two"]) {
      expect(alike.textOf(written(text))).toBeUndefined();
      alike.learn(written(text), text);
    }
    expect(alike.textOf(written("three"))).toBe("three");
    expect(alike.textOf(written('say \\"four\\"'))).toBeUndefined();
  });

  test("are none where the text stands in another place as well, or its place is not the one that is read", () => {
    const elsewhere = (text: string) => `{"content":"${text}","choices":[{"index":0,"delta":{"content":"${text}"}}]}`;
    const overruled = (text: string) => `{"choices":[{"index":0,"delta":{"content":"a","content":"${text}"}}]}`;
    for (const written of [elsewhere, overruled]) {
      const alike = new AlikeChunks();
      for (let time = 0; time < 5; time += 1) alike.learn(written("a"), "a");
      expect(alike.textOf(written("a"))).toBeUndefined();
    }
  });
});
