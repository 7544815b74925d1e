import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { pickChunk } from "../../../services/agent/runtimes/openai/openai-answer.ts";
import {
  OpenAiToolCalls,
  toolArgumentsCharactersMax,
} from "../../../services/agent/runtimes/openai/openai-tool-calls.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

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

test("tool calls come in pieces, of which only the first has id and name", () => {
  const pieces = [
    { index: 0, id: "a", function: { name: "f", arguments: "{" } },
    { index: 0, function: { arguments: '"x":1' } },
    { index: 0, function: { name: "", arguments: "}" } },
  ];
  expect(calls(pieces)).toEqual([start(0, "f", "a"), said(0, "{"), said(0, '"x":1'), said(0, "}")]);
});

test("tool calls come whole, with their arguments as an object instead of text", () => {
  expect(calls([{ index: 0, id: "a", function: { name: "f", arguments: { x: 1 } } }])).toEqual([
    start(0, "f", "a"),
    said(0, '{"x":1}'),
  ]);
});

test("tool calls may lack index and id, and still be told apart", () => {
  const pieces = [
    { function: { name: "f", arguments: "{}" } },
    { function: { name: "g", arguments: "{" } },
    { function: { arguments: "}" } },
  ];
  expect(calls(pieces)).toEqual([start(0, "f"), said(0, "{}"), start(1, "g"), said(1, "{"), said(1, "}")]);
});

test("tool calls may all have the same index", () => {
  const pieces = [
    { index: 0, id: "a", function: { name: "f", arguments: "{}" } },
    { index: 0, id: "b", function: { name: "f", arguments: "{}" } },
  ];
  expect(calls(pieces)).toEqual([start(0, "f", "a"), said(0, "{}"), start(1, "f", "b"), said(1, "{}")]);
});

test("tool calls count from 0, wherever the runtime begins", () => {
  const pieces = [
    { index: 3, id: "a", function: { name: "f", arguments: "{}" } },
    { index: 5, id: "b", function: { name: "g", arguments: "{}" } },
  ];
  expect(calls(pieces).filter(({ kind }) => kind === "tool-call-start")).toEqual([
    start(0, "f", "a"),
    start(1, "g", "b"),
  ]);
});

test("tool calls may come interleaved", () => {
  const pieces = [
    { index: 0, id: "a", function: { name: "f", arguments: "{" } },
    { index: 1, id: "b", function: { name: "g", arguments: "{" } },
    { index: 0, function: { arguments: "}" } },
    { index: 1, function: { arguments: "}" } },
  ];
  expect(calls(pieces).slice(-2)).toEqual([said(0, "}"), said(1, "}")]);
});

test.each([
  ["a new id in every piece", { index: 0, id: "b", function: { arguments: "}" } }],
  ["the name again in every piece", { index: 0, function: { name: "f", arguments: "}" } }],
  ["id and name again in every piece", { index: 0, id: "a", function: { name: "f", arguments: "}" } }],
])("tool calls stay one call with %s", (_, piece) => {
  const first = { index: 0, id: "a", function: { name: "f", arguments: "{" } };
  expect(calls([first, piece])).toEqual([start(0, "f", "a"), said(0, "{"), said(0, "}")]);
});

test("tool calls begin when their name is known, with all that came before", () => {
  const pieces = [
    { index: 0, id: "a", function: { arguments: "{" } },
    { index: 0, function: { name: "f", arguments: "}" } },
  ];
  expect(calls(pieces)).toEqual([start(0, "f", "a"), said(0, "{}")]);
});

test("tool calls without arguments have empty ones", () => {
  expect(calls([{ index: 0, id: "a", function: { name: "f", arguments: "" } }])).toEqual([
    start(0, "f", "a"),
    said(0, "{}"),
  ]);
});

test("tool calls beyond those that were wanted are left out, whatever they say", () => {
  const pieces = [
    { index: 0, id: "a", function: { name: "f", arguments: "{}" } },
    { index: 1, id: "b", function: { name: "g", arguments: "{" } },
    { index: 1, function: { arguments: "oops" } },
  ];
  expect(calls(pieces, { callsMax: 1 })).toEqual([start(0, "f", "a"), said(0, "{}")]);
});

test.each([
  ["arguments that are not JSON", { index: 0, id: "a", function: { name: "f", arguments: "{secret" } }],
  ["no name", { index: 0, id: "a", function: { arguments: "{}" } }],
])("tool calls with %s fail the answer at its end, without repeating them", (_, piece) => {
  const fault = faultThrownBy(() => calls([piece]));
  expect(fault).toMatchObject({ code: "upstream_error", message: "The model's tool call could not be parsed." });
  expect(fault.internal).not.toContain("secret");
});

test("tool calls may be cut off with the answer", () => {
  const piece = { index: 0, id: "a", function: { name: "f", arguments: '{"x":' } };
  expect(calls([piece], { cutOff: true })).toEqual([start(0, "f", "a"), said(0, '{"x":')]);
});

test("tool calls are bounded in all, by name", () => {
  const piece = { index: 0, id: "a", function: { name: "f", arguments: "x".repeat(1024 * 1024) } };
  const many = Array.from({ length: 9 }, () => piece);
  expect(() => calls(many)).toThrow(`${toolArgumentsCharactersMax} characters (toolArgumentsCharactersMax)`);
});
