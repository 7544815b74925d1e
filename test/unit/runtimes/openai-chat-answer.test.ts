import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { chatBody, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { OpenAiAnswer } from "../../../services/agent/runtimes/openai/openai-answer.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

/** A chat with tools, to a server that gives several answers. */
const usual = chatBody.parse({
  messages: [{ role: "user", content: "Hi" }],
  tools: [{ type: "function", function: { name: "f" } }],
  top_logprobs: 1,
});
const several = { ...otherServer, answersSeveral: true };

interface Facts {
  readonly body?: Partial<ChatBody>;
  /** True if the server leaves a stream when another request comes. */
  readonly interrupts?: boolean;
}

function answerOf({ body = {}, interrupts = false }: Facts = {}) {
  const served = { profile: several, model: { name: "m", interrupts } };
  const answer = new OpenAiAnswer({ ...usual, ...body }, served);
  const take = (data: unknown, name = ""): AnswerEvent[] => {
    const events: AnswerEvent[] = [];
    answer.read({ kind: "event", name, data: typeof data === "string" ? data : JSON.stringify(data) }, events);
    return events;
  };
  return { answer, take };
}

/** The events of an answer that comes in these chunks. */
function said(chunks: readonly unknown[], facts: Facts = {}): AnswerEvent[] {
  const { take } = answerOf(facts);
  return chunks.flatMap((chunk) => take(chunk));
}

const faultOf = (chunks: readonly unknown[], facts: Facts = {}): Fault => faultThrownBy(() => said(chunks, facts));

function delta(content: object, finishReason: string | null = null): unknown {
  return { choices: [{ index: 0, delta: content, finish_reason: finishReason }] };
}

const finished = delta({}, "stop");
const stop: AnswerEvent = { kind: "finish", reason: "stop" };

test("an OpenAI-shaped answer names the stop string that ended it, where the server names one and no token", () => {
  const ended = (stop_reason: unknown) => ({ choices: [{ index: 0, delta: {}, finish_reason: "stop", stop_reason }] });
  expect(said([ended("END")])).toEqual([{ ...stop, stop: "END" }]);
  expect(said([ended(128_009)])).toEqual([stop]);
  expect(said([ended(null)])).toEqual([stop]);
});

test("an OpenAI-shaped answer says nothing by the chunk that only tells the role, with or without content", () => {
  const roles = [delta({ role: "assistant", content: null }), delta({ role: "assistant", content: "" }), delta({})];
  const nulls = { content: null, reasoning: null, reasoning_content: null, tool_calls: null };
  const silent = { index: null, delta: nulls, finish_reason: null, logprobs: null };
  expect(said([...roles, { choices: [silent], usage: null }, { choices: null }])).toEqual([]);
});

test("an OpenAI-shaped answer may tell its end on a chunk of its own, or with the last text", () => {
  const text: AnswerEvent = { kind: "text", text: "hi" };
  expect(said([delta({ content: "hi" }), finished])).toEqual([text, stop]);
  expect(said([delta({ content: "hi" }, "stop")])).toEqual([text, stop]);
});

test.each([
  ["stop", "stop"],
  ["length", "length"],
  ["content_filter", "content_filter"],
  ["function_call", "tool_calls"],
  ["eos_found", "stop"],
])("an OpenAI-shaped answer that ends with %s has the finish reason %s", (told, reason) => {
  expect(said([delta({ content: "x" }, told)]).at(-1)).toEqual({ kind: "finish", reason });
});

test("an OpenAI-shaped answer has no end yet while its reason is empty, and has one when the stream says so", () => {
  const { answer, take } = answerOf();
  take(delta({ content: "hi" }, ""));
  expect(answer.isComplete).toBe(false);
  expect(take("[DONE]")).toEqual([stop]);
  expect([answer.isComplete, answer.isOver]).toEqual([true, true]);
});

test("an answer that has begun is done by [DONE] without a finish reason", () => {
  const { answer, take } = answerOf();
  take(delta({ content: "hi" }));
  expect(take("[DONE]")).toEqual([stop]);
  expect([answer.isComplete, answer.isOver, answer.endedBare]).toEqual([true, true, true]);
});

test("an answer of which only [DONE] came, or only one of its two choices, is not done", () => {
  const { answer: empty, take: end } = answerOf();
  expect([end("[DONE]"), empty.isComplete, empty.isOver]).toEqual([[], false, true]);
  const { answer: half, take } = answerOf({ body: { n: 2 } });
  take(delta({ content: "hi" }));
  expect([take("[DONE]"), half.isComplete, half.isOver]).toEqual([[stop], false, true]);
});

test("[DONE] without a finish reason fails a tool call whose arguments were cut off", () => {
  const call = { index: 0, id: "c", function: { name: "f", arguments: '{"city":' } };
  expect(faultOf([delta({ tool_calls: [call] }), "[DONE]"]).code).toBe("upstream_error");
});

test("[DONE] without a finish reason is a failure of a server that interrupts its streams", () => {
  expect(faultOf([delta({ content: "hi" }), "[DONE]"], { interrupts: true }).code).toBe("upstream_error");
  expect(said([delta({ content: "hi" }, "stop"), "[DONE]"], { interrupts: true }).at(-1)).toEqual(stop);
});

test("an OpenAI-shaped answer says nothing after [DONE]", () => {
  expect(said([finished, "[DONE]", delta({ content: "more" })])).toEqual([stop]);
});

test.each([["reasoning"], ["reasoning_content"]])("an OpenAI-shaped answer thinks in the field %s", (field) => {
  expect(said([delta({ [field]: "hm", content: "" })])).toEqual([{ kind: "reasoning", text: "hm" }]);
});

test("an OpenAI-shaped answer thinks once where both fields say the same, and where one of them is empty", () => {
  const both = delta({ reasoning: "hm", reasoning_content: "hm" });
  const oneEmpty = delta({ reasoning: "hm", reasoning_content: "" });
  const oneNull = delta({ reasoning: null, reasoning_content: "hm" });
  const thought: AnswerEvent = { kind: "reasoning", text: "hm" };
  expect(said([both, oneEmpty, oneNull])).toEqual([thought, thought, thought]);
});

test("an OpenAI-shaped answer tells usage wherever it stands, with details where they are known", () => {
  const usage = { prompt_tokens: 5, completion_tokens: 6, prompt_tokens_details: { cached_tokens: 4 } };
  const told: AnswerEvent = { kind: "usage", promptTokens: 5, completionTokens: 6, cachedTokens: 4 };
  expect(said([{ choices: [], usage }])).toEqual([told]);
  expect(said([{ object: "chat.completion", usage, choices: [] }])).toEqual([told]);
  expect(said([{ ...(finished as object), usage }])).toEqual([stop, told]);
  const malformed = { prompt_tokens: 3, completion_tokens: -1, completion_tokens_details: "secret" };
  expect(said([{ usage: malformed }])).toEqual([{ kind: "usage", promptTokens: 3, completionTokens: 0 }]);
  expect(said([{ usage: { prompt_tokens: "3" } }])).toEqual([]);
});

test("an OpenAI-shaped answer may have a text and a call in one chunk, of which the text comes first", () => {
  const call = { index: 0, id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  expect(said([delta({ content: "I look", tool_calls: [call] })]).map(({ kind }) => kind)).toEqual([
    "text",
    "tool-call-start",
    "tool-call-delta",
  ]);
});

test("an OpenAI-shaped answer tells of no more alternatives than were asked for, where llama-server tells of twenty unasked", () => {
  const other = { id: 4, token: "ho", logprob: -2, bytes: [104, 111] };
  const content = [
    { id: 3, token: "hi", logprob: -0.5, bytes: [104, 105], top_logprobs: Array.from({ length: 20 }, () => other) },
  ];
  const chunk = { choices: [{ index: 0, delta: { content: "hi" }, logprobs: { content } }] };
  const asked = (topLogprobs: number) => said([chunk], { body: { top_logprobs: topLogprobs } });
  expect(asked(0)).toMatchObject([{ logprobs: [{ token: "hi", top_logprobs: [] }] }]);
  expect(asked(2)).toMatchObject([{ logprobs: [{ top_logprobs: [{ token: "ho" }, { token: "ho" }] }] }]);
});

test("an OpenAI-shaped answer does not attach the likelihoods of thoughts to the text, which llama-server tells from the first token on", () => {
  const lp = (token: string) => ({ content: [{ id: 1, token, logprob: 0, bytes: [1], top_logprobs: [] }] });
  const chunk = (fields: object, token: string) => ({ choices: [{ index: 0, delta: fields, logprobs: lp(token) }] });
  const events = said([
    chunk({ role: "assistant", content: null }, "<think>"),
    chunk({ reasoning_content: "I" }, "I"),
    chunk({ content: "Hello" }, "Hello"),
  ]);
  expect(events).toMatchObject([
    { kind: "reasoning", text: "I" },
    { kind: "text", text: "Hello", logprobs: [{ token: "Hello" }] },
  ]);
  expect(events[0]).not.toHaveProperty("logprobs");
});

test("an OpenAI-shaped answer without the likelihoods that were asked for is refused by name, where a server may ignore them", () => {
  const fault = faultOf([delta({ content: "hi" })], { body: { logprobs: true } });
  expect(fault).toMatchObject({ code: "unsupported_parameter", param: "logprobs" });
});

test.each([
  ["an object", { error: { message: "secret", type: "server_error", code: 500 } }],
  ["a string", { error: "secret" }],
  ["a bare string", JSON.stringify("secret")],
])("an OpenAI-shaped answer that fails tells it by %s", (_, data) => {
  const fault = faultOf([delta({ content: "hi" }), data]);
  expect(fault).toMatchObject({ code: "upstream_error", message: "The runtime failed during its answer." });
  expect(`${fault.message} ${fault.internal}`).not.toContain("secret");
});

test("an OpenAI-shaped answer that fails tells it by an event of that name, whatever it says", () => {
  const { take } = answerOf();
  expect(() => take({ message: "boom" }, "error")).toThrow(Fault);
});

test("an OpenAI-shaped answer that fails before it began has refused the request, and is told as a refusal is", () => {
  const text =
    "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.";
  const fault = faultOf([{ error: { message: text } }]);
  expect(fault).toMatchObject({
    code: "context_length_exceeded",
    overflow: { promptTokens: 9000, windowTokens: 4096 },
  });
});

test.each([
  ["no JSON", "{secret"],
  ["no chunk", { choices: "secret" }],
  ["another answer than was asked for", { choices: [{ index: 7, delta: { tool_calls: [{}] } }] }],
  ["a chunk that is a list", []],
  ["nothing", null],
  ["a choice that is a text", { choices: ["secret"] }],
  ["a delta that is a list", { choices: [{ delta: ["secret"] }] }],
  ["a text that is a number", { choices: [{ delta: { content: 7 } }] }],
  ["an index below zero", { choices: [{ index: -1 }] }],
  ["arguments that are a list", { choices: [{ delta: { tool_calls: [{ function: { arguments: ["secret"] } }] } }] }],
])("an OpenAI-shaped answer that fails sends %s, which makes no sense", (_, data) => {
  const fault = faultOf([data]);
  expect(fault).toMatchObject({ code: "upstream_error", message: "The runtime sent an invalid event." });
  expect(`${fault.internal} ${String(fault.cause)}`).not.toContain("secret");
});

test.each([["error"], ["abort"]])(
  "an OpenAI-shaped answer that fails may say so by its finish reason: %s",
  (reason) => {
    expect(faultOf([delta({ content: "hi" }), delta({}, reason)]).code).toBe("upstream_error");
  },
);
