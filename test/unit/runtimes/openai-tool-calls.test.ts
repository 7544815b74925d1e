import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { OpenAiAnswer, pickChunk } from "../../../services/agent/runtimes/openai/openai-answer.ts";
import {
  OpenAiToolCalls,
  toolArgumentsCharactersMax,
} from "../../../services/agent/runtimes/openai/openai-tool-calls.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { offersTools } from "../../../services/agent/runtimes/adjust-answer.ts";
import { OllamaAnswer } from "../../../services/agent/runtimes/ollama/ollama-answer.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server.ts";

function calls(pieces: readonly object[], options: { callsMax?: number; cutOff?: boolean } = {}): AnswerEvent[] {
  const { callsMax = Infinity, cutOff = false } = options;
  const assembled = new OpenAiToolCalls({ callsMax, choice: 0, asText: false });
  const read = pickChunk({ choices: [{ delta: { tool_calls: pieces } }] }).choices.flatMap((choice) => choice.calls);
  return [...read.flatMap((piece) => [...assembled.push(piece)]), ...assembled.end({ cutOff })];
}

function start(index: number, name: string, id?: string): AnswerEvent {
  return { kind: "tool-call-start", index, name, ...(id !== undefined && { id }) };
}

function said(index: number, text: string): AnswerEvent {
  return { kind: "tool-call-delta", index, arguments: text };
}

const piece = (index: number | undefined, id: string | undefined, name: string | undefined, args: unknown) => ({
  index,
  id,
  function: { name, arguments: args },
});

test.each<[how: string, pieces: readonly object[], events: readonly AnswerEvent[]]>([
  [
    "in pieces, of which only the first has id and name",
    [piece(0, "a", "f", "{"), piece(0, undefined, undefined, '"x":1'), piece(0, undefined, "", "}")],
    [start(0, "f", "a"), said(0, "{"), said(0, '"x":1'), said(0, "}")],
  ],
  [
    "whole, with their arguments as an object instead of text",
    [piece(0, "a", "f", { x: 1 })],
    [start(0, "f", "a"), said(0, '{"x":1}')],
  ],
  [
    "without index and id, and are still told apart",
    [piece(undefined, undefined, "f", "{}"), piece(undefined, undefined, "g", "{"), { function: { arguments: "}" } }],
    [start(0, "f"), said(0, "{}"), start(1, "g"), said(1, "{"), said(1, "}")],
  ],
  [
    "with one index for all",
    [piece(0, "a", "f", "{}"), piece(0, "b", "f", "{}")],
    [start(0, "f", "a"), said(0, "{}"), start(1, "f", "b"), said(1, "{}")],
  ],
  [
    "counted from anywhere, and count from 0",
    [piece(3, "a", "f", "{}"), piece(5, "b", "g", "{}")],
    [start(0, "f", "a"), said(0, "{}"), start(1, "g", "b"), said(1, "{}")],
  ],
  [
    "interleaved",
    [
      piece(0, "a", "f", "{"),
      piece(1, "b", "g", "{"),
      { index: 0, function: { arguments: "}" } },
      piece(1, "b", "", "}"),
    ],
    [start(0, "f", "a"), said(0, "{"), start(1, "g", "b"), said(1, "{"), said(0, "}"), said(1, "}")],
  ],
  [
    "with a name that comes late, and begin then with all that came before",
    [piece(0, "a", undefined, "{"), piece(0, undefined, "f", "}")],
    [start(0, "f", "a"), said(0, "{}")],
  ],
  ["without arguments, which are empty ones", [piece(0, "a", "f", "")], [start(0, "f", "a"), said(0, "{}")]],
])("tool calls may come %s", (_, pieces, events) => {
  expect(calls(pieces)).toEqual(events);
});

test.each([
  ["a new id", piece(0, "b", undefined, "}")],
  ["the name again", piece(0, undefined, "f", "}")],
  ["id and name again", piece(0, "a", "f", "}")],
])("tool calls stay one call with %s in every piece", (_, next) => {
  expect(calls([piece(0, "a", "f", "{"), next])).toEqual([start(0, "f", "a"), said(0, "{"), said(0, "}")]);
});

test("tool calls beyond those that were wanted are left out, whatever they say", () => {
  const pieces = [piece(0, "a", "f", "{}"), piece(1, "b", "g", "{"), piece(1, undefined, undefined, "oops")];
  expect(calls(pieces, { callsMax: 1 })).toEqual([start(0, "f", "a"), said(0, "{}")]);
});

test.each([
  ["arguments that are not JSON", piece(0, "a", "f", "{secret")],
  ["no name", piece(0, "a", undefined, "{}")],
])("tool calls with %s fail the answer at its end, without repeating them", (_, wrong) => {
  const fault = faultThrownBy(() => calls([wrong]));
  expect(fault).toMatchObject({ code: "upstream_error", message: "The model's tool call could not be parsed." });
  expect(fault.internal).not.toContain("secret");
});

test("tool calls may be cut off with the answer", () => {
  expect(calls([piece(0, "a", "f", '{"x":')], { cutOff: true })).toEqual([start(0, "f", "a"), said(0, '{"x":')]);
});

test("tool calls are bounded in all, by name", () => {
  const many = Array.from({ length: 9 }, () => piece(0, "a", "f", "x".repeat(1024 * 1024)));
  expect(() => calls(many)).toThrow(`${toolArgumentsCharactersMax} characters (toolArgumentsCharactersMax)`);
});

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
