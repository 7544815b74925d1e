import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { chatBody, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { OllamaAnswer } from "../../../services/agent/runtimes/ollama/ollama-answer.ts";

function call(name: string, fields: object = {}) {
  return { ...fields, function: { index: 0, name, arguments: { a: 1 } } };
}
const done = { message: { role: "assistant", content: "" }, done: true, done_reason: "stop" };

/** A chat with tools of 32 tokens by the rule of thumb. */
const usual = chatBody.parse({
  messages: [{ role: "user", content: "x".repeat(79) }],
  tools: [{ type: "function", function: { name: "first" } }],
});

function eventsOf(lines: readonly unknown[], fields: Partial<ChatBody> = {}): AnswerEvent[] {
  const answer = new OllamaAnswer({ ...usual, ...fields });
  return lines.flatMap((line) => answer.events(line));
}

test("an answer of Ollama's says what the lines say, thoughts and text apart, and nothing for what is empty", () => {
  const lines = [
    { message: { role: "assistant", content: "", thinking: "Let" }, done: false },
    { message: { role: "assistant", content: "Hello" }, done: false },
    { ...done, prompt_eval_count: 20, eval_count: 31 },
  ];
  expect(eventsOf(lines)).toEqual([
    { kind: "reasoning", text: "Let" },
    { kind: "text", text: "Hello" },
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens: 20, completionTokens: 31 },
  ]);
});

test("an answer of Ollama's counts tool calls over its lines, those on the last one too", () => {
  const lines = [
    { message: { content: "", tool_calls: [call("first", { id: "call_x" })] }, done: false },
    { ...done, message: { content: "", tool_calls: [call("second")] } },
  ];
  expect(eventsOf(lines).slice(0, 5)).toEqual([
    { kind: "tool-call-start", index: 0, id: "call_x", name: "first" },
    { kind: "tool-call-delta", index: 0, arguments: '{"a":1}' },
    { kind: "tool-call-start", index: 1, name: "second" },
    { kind: "tool-call-delta", index: 1, arguments: '{"a":1}' },
    { kind: "finish", reason: "tool_calls" },
  ]);
});

test("an answer of Ollama's passes on the first call alone when calls may not come together", () => {
  const lines = [{ message: { tool_calls: [call("first"), call("second")] } }, done];
  const started = eventsOf(lines, { parallel_tool_calls: false }).filter(({ kind }) => kind === "tool-call-start");
  expect(started).toEqual([{ kind: "tool-call-start", index: 0, name: "first" }]);
});

test.each([
  ["length", "length"],
  ["stop", "stop"],
  ["", "stop"],
  [undefined, "stop"],
  ["something new", "stop"],
])("an answer of Ollama's that is done because of %j finishes with %s", (reason, finish) => {
  expect(eventsOf([{ ...done, done_reason: reason }])).toContainEqual({ kind: "finish", reason: finish });
});

test("an answer of Ollama's is over at its last line, whatever still comes", () => {
  expect(eventsOf([done, { message: { content: "more" } }, done])).toHaveLength(2);
});

test("an answer of Ollama's is not done before Ollama says so", () => {
  const answer = new OllamaAnswer(usual);
  answer.events({ message: { content: "Hello" }, done: false });
  expect(() => answer.end()).toThrow("The runtime ended its answer before it was complete.");
  answer.events(done);
  expect(answer.end()).toEqual([]);
});

test("an answer of an Ollama model that repeats itself has met a limit, where Ollama ends it without a word", () => {
  const answer = new OllamaAnswer(usual);
  const same = { message: { role: "assistant", content: "same" }, done: false };
  for (let times = 0; times < 31; times += 1) answer.events(same);
  expect(answer.end()).toEqual([
    { kind: "finish", reason: "length" },
    { kind: "usage", promptTokens: 32, completionTokens: 31 },
  ]);
});

test("an answer of Ollama's that was cut at its limit within a call has met that limit, where Ollama calls it a failure", () => {
  const error = 'llama-server returned invalid tool call arguments for "get_weather": unexpected end of JSON input';
  const thought = { message: { role: "assistant", content: "", thinking: ".\n" }, done: false };
  expect(eventsOf([thought, { error }], { max_tokens: 14 })).toEqual([
    { kind: "reasoning", text: ".\n" },
    { kind: "finish", reason: "length" },
    { kind: "usage", promptTokens: 32, completionTokens: 14 },
  ]);
  expect(() => eventsOf([thought, { error }])).toThrow("The runtime failed during its answer.");
});

test("an answer of Ollama's fails at an error line, whose text is kept nowhere, since it may quote the prompt", () => {
  const fail = () => eventsOf([{ error: "an error was encountered in /root/.ollama" }]);
  expect(fail).toThrow("The runtime failed during its answer.");
  expect(fail).toThrow(
    expect.objectContaining({ code: "upstream_error", internal: expect.not.stringContaining("/root") }),
  );
});

test.each([[7], [null], [{ message: { content: 7 } }], [{ done: "yes" }], [{ eval_count: -1 }]])(
  "an answer of Ollama's fails at a line that makes no sense: %j",
  (line) => {
    expect(() => eventsOf([line])).toThrow("The runtime sent an invalid line.");
  },
);
