import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { offersTools } from "../../../services/agent/runtimes/adjust-answer.ts";
import { OllamaAnswer } from "../../../services/agent/runtimes/ollama/ollama-answer.ts";
import { OpenAiAnswer } from "../../../services/agent/runtimes/openai/openai-answer.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server.ts";

/** The events of these choices, a chunk each, of a server that parses calls although the request offered no tools. */
function told(...choices: readonly { readonly index?: number; readonly [field: string]: unknown }[]): AnswerEvent[] {
  const served = { profile: { ...otherServer, answersSeveral: true }, model: { name: "m" } };
  const answer = new OpenAiAnswer({ messages: [{ role: "user", content: "Hi" }], n: 2 }, served);
  const events: AnswerEvent[] = [];
  for (const choice of choices) {
    answer.read({ kind: "event", name: "", data: JSON.stringify({ choices: [{ index: 0, ...choice }] }) }, events);
  }
  return events;
}

const call = (index: number, name: string | undefined, args: string) => ({
  delta: {
    tool_calls: [{ index, ...(name !== undefined && { id: `call-${name}` }), function: { name, arguments: args } }],
  },
});
const text = (content: string, index = 0) => ({ index, delta: { content } });
const finish = (reason: string, index = 0) => ({ index, delta: {}, finish_reason: reason });

test("a tool call that nobody offered is the text that it would be elsewhere, in pieces or not", () => {
  expect(
    told(text("\n\n"), call(0, "get_weather", '{"city"'), call(0, undefined, ': "Rome"}'), finish("stop")),
  ).toEqual([
    { kind: "text", text: "\n\n" },
    { kind: "text", text: '{"name": "get_weather", "arguments": {"city": "Rome"}}' },
    { kind: "finish", reason: "stop" },
  ]);
});

test("a tool call that nobody offered is told apart from the next, and said without arguments as well", () => {
  expect(told(call(0, "a", ""), call(1, "b", "{}"), finish("length"))).toEqual([
    { kind: "text", text: '{"name": "a", "arguments": {}}' },
    { kind: "text", text: '{"name": "b", "arguments": {}}' },
    { kind: "finish", reason: "length" },
  ]);
});

test("a tool call that nobody offered comes before the text that follows it, and belongs to its own answer of several", () => {
  expect(told({ ...call(0, "a", ""), index: 1 }, text("first"), text("after", 1), finish("stop", 1))).toEqual([
    { kind: "text", text: "first" },
    { kind: "text", choice: 1, text: '{"name": "a", "arguments": {}}' },
    { kind: "text", choice: 1, text: "after" },
    { kind: "finish", choice: 1, reason: "stop" },
  ]);
});

test("a tool call that nobody offered is text for Ollama, and no reason to end", () => {
  const answer = new OllamaAnswer({ messages: [{ role: "user", content: "Hi" }] });
  const message = { tool_calls: [{ function: { name: "get_weather", arguments: { city: "Rome" } } }] };
  expect(answer.events({ message, done: true, prompt_eval_count: 3, eval_count: 4 })).toEqual([
    { kind: "text", text: '{"name": "get_weather", "arguments": {"city":"Rome"}}' },
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens: 3, completionTokens: 4 },
  ]);
});

test("tools are offered where they are sent and may be chosen", () => {
  const messages = [{ role: "user", content: "Hi" }];
  const tools = [{ type: "function", function: { name: "f" } }];
  const offers = (fields: object) => offersTools(chatBody.parse({ messages, ...fields }));
  expect([offers({}), offers({ tools }), offers({ tools, tool_choice: "none" })]).toEqual([false, true, false]);
});
