import { describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { CallsAsText, offersTools } from "../../../services/agent/runtimes/adjust-answer.ts";

function told(batches: readonly (readonly AnswerEvent[])[]): AnswerEvent[] {
  const calls = new CallsAsText();
  return batches.flatMap((events) => [...calls.push(events)]);
}

const start = (index: number, name: string): AnswerEvent => ({ kind: "tool-call-start", index, id: "x", name });
const piece = (index: number, text: string): AnswerEvent => ({ kind: "tool-call-delta", index, arguments: text });
const usage: AnswerEvent = { kind: "usage", promptTokens: 11, completionTokens: 19 };

describe("a tool call that nobody offered", () => {
  test("is the text that it would be elsewhere, and no reason to end", async () => {
    const calls: AnswerEvent[] = [start(0, "get_weather"), piece(0, '{"city"'), piece(0, ': "Rome"}')];
    expect(told([[{ kind: "text", text: "\n\n" }], calls, [{ kind: "finish", reason: "tool_calls" }, usage]])).toEqual([
      { kind: "text", text: "\n\n" },
      { kind: "text", text: '{"name": "get_weather", "arguments": {"city": "Rome"}}' },
      { kind: "finish", reason: "stop" },
      usage,
    ]);
  });

  test("is told apart from the next, and said without arguments as well", async () => {
    const events = told([[start(0, "a"), start(1, "b"), piece(1, "{}"), { kind: "finish", reason: "length" }]]);
    expect(events).toEqual([
      { kind: "text", text: '{"name": "a", "arguments": {}}' },
      { kind: "text", text: '{"name": "b", "arguments": {}}' },
      { kind: "finish", reason: "length" },
    ]);
  });

  test("belongs to its own answer of several", async () => {
    const call: AnswerEvent[] = [
      { kind: "tool-call-start", choice: 1, index: 0, name: "a" },
      { kind: "text", text: "first" },
      { kind: "finish", choice: 1, reason: "stop" },
    ];
    expect(told([call])).toEqual([
      { kind: "text", text: "first" },
      { kind: "text", choice: 1, text: '{"name": "a", "arguments": {}}' },
      { kind: "finish", choice: 1, reason: "stop" },
    ]);
  });
});

test("tools are offered where they are sent and may be chosen", () => {
  const messages = [{ role: "user", content: "Hi" }];
  const tools = [{ type: "function", function: { name: "f" } }];
  const offers = (fields: object) => offersTools(chatBody.parse({ messages, ...fields }));
  expect([offers({}), offers({ tools }), offers({ tools, tool_choice: "none" })]).toEqual([false, true, false]);
});
