import * as fc from "fast-check";
import type { ChatCompletion, ChatCompletionChunk } from "openai/resources/chat/completions";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { limits } from "#shared/protocol/limits.ts";
import { chunksOf, head, regular, rendered, rendererFor, runtimeEvents, wholeOf } from "./answers.ts";
import { finish as stop } from "./events.ts";

/** Puts a stream together as every client does. */
function folded(chunks: readonly ChatCompletionChunk[]) {
  const calls: { id: string; name: string; arguments: string }[] = [];
  let [content, reasoning, finish]: [string, string, string | null] = ["", "", null];
  for (const { delta, finish_reason: told } of chunks.flatMap(({ choices }) => choices)) {
    content += delta.content ?? "";
    reasoning += "reasoning" in delta ? String(delta.reasoning) : "";
    finish = told ?? finish;
    for (const { index, id, function: part } of delta.tool_calls ?? []) {
      if (id !== undefined) calls[index] = { id, name: part?.name ?? "", arguments: "" };
      const call = calls[index];
      if (call !== undefined) call.arguments += part?.arguments ?? "";
    }
  }
  return { content, reasoning, calls, finish, usage: chunks.at(-1)?.usage ?? null };
}

function unfolded({ choices, usage }: ChatCompletion) {
  const [choice] = choices;
  if (choice === undefined || choices.length > 1) throw new Error("a whole answer has one choice");
  const { message, finish_reason: finish } = choice;
  const calls = (message.tool_calls ?? []).map((call) => {
    if (call.type !== "function") throw new Error(call.type);
    return { id: call.id, ...call.function };
  });
  const reasoning = "reasoning" in message ? String(message.reasoning) : "";
  return { content: message.content ?? "", reasoning, calls, finish, usage };
}

test("a whole answer says the same text, reasoning, calls and finish as its stream, for anything a runtime says", async () => {
  await fc.assert(
    fc.asyncProperty(runtimeEvents, async (events) => {
      const all = regular(events);
      const stream = folded(await chunksOf(rendered("chat-stream", all, { includeUsage: true })));
      const whole = unfolded(wholeOf(rendered("chat-whole", all)));
      const unknown = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
      expect(whole).toEqual({ ...stream, usage: stream.usage ?? unknown });
    }),
    { numRuns: 300 },
  );
});

test("a whole answer has the keys that OpenAI's schema requires, and no others beside reasoning", () => {
  const told = wholeOf(rendered("chat-whole", regular([{ kind: "text", text: "Hi" }, stop, usage])));
  const { system_fingerprint: _, ...rest } = told;
  const expected: ChatCompletion = {
    id: head.id,
    object: "chat.completion",
    created: head.createdSeconds,
    model: head.model,
    choices: [
      {
        index: 0,
        finish_reason: "stop",
        logprobs: null,
        message: { role: "assistant", content: "Hi", refusal: null },
      },
    ],
    usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
  };
  expect(rest).toEqual(expected);
});

test("a whole answer has null for content when it only calls tools, and an empty text when it says nothing", () => {
  const calling = regular([{ kind: "tool-call-start", index: 0, id: "call_1", name: "f" }, stop]);
  expect(wholeOf(rendered("chat-whole", calling)).choices[0]?.message).toEqual({
    role: "assistant",
    content: null,
    refusal: null,
    tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "" } }],
  });
  expect(wholeOf(rendered("chat-whole", regular([stop]))).choices[0]?.message.content).toBe("");
});

test("a whole answer sends nothing before its end, and names its limit when it grows past that", () => {
  const renderer = rendererFor("chat-whole", head);
  const text = "x".repeat(limits.wholeAnswerCharactersMax / 4);
  for (let count = 0; count < 4; count += 1) expect(renderer?.push([{ kind: "text", text }])).toHaveLength(0);
  expect(() => renderer?.push([{ kind: "text", text: "x" }])).toThrow(/wholeAnswerCharactersMax/);
});

test.each<[string, AnswerEvent]>([
  ["single characters", { kind: "text", text: "x" }],
  ["tool calls without arguments", { kind: "tool-call-start", index: 0, name: "" }],
])("a whole answer reaches its limit by %s, each of which takes far more memory than its characters", (_, event) => {
  const renderer = rendererFor("chat-whole", head);
  const events = Array.from({ length: limits.wholeAnswerCharactersMax / 16 }, (__, index) =>
    event.kind === "tool-call-start" ? { ...event, index } : event,
  );
  expect(renderer?.push(events.slice(0, 1_000))).toHaveLength(0);
  expect(() => renderer?.push(events)).toThrow(/wholeAnswerCharactersMax/);
});

const usage: AnswerEvent = { kind: "usage", promptTokens: 7, completionTokens: 2 };
