import type { ChatCompletionChunk } from "openai/resources/chat/completions";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { chunksOf, head, regular, rendered } from "./answers.ts";

type Delta = ChatCompletionChunk.Choice.Delta & { reasoning_content?: string; reasoning?: string };
type Chunk = Omit<ChatCompletionChunk, "choices"> & { choices: (ChatCompletionChunk.Choice & { delta: Delta })[] };

const constant = {
  id: head.id,
  object: "chat.completion.chunk",
  created: head.createdSeconds,
  model: head.model,
} as const;
const chunk = (delta: Delta, finish: ChatCompletionChunk.Choice["finish_reason"] = null): Chunk => ({
  ...constant,
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
});
const first = chunk({ role: "assistant", content: "", refusal: null });
const stop: AnswerEvent = { kind: "finish", reason: "stop" };

async function streamed(events: readonly AnswerEvent[], options: { includeUsage?: boolean } = {}): Promise<unknown[]> {
  const chunks = await chunksOf(rendered("chat-stream", regular(events), options));
  return chunks.map((each) => {
    const { system_fingerprint: _, ...rest } = each;
    return rest;
  });
}

test("a chat stream names the role once, in a first chunk of its own, and finishes in a last one with nothing else", async () => {
  const expected: Chunk[] = [first, chunk({ content: "Hel" }), chunk({ content: "lo" }), chunk({}, "stop")];
  expect(await streamed([{ kind: "text", text: "Hel" }, { kind: "text", text: "lo" }, stop])).toEqual(expected);
});

test("a chat stream has its first and its last chunk also when the model says nothing", async () => {
  expect(await streamed([stop])).toEqual([first, chunk({}, "stop")] satisfies Chunk[]);
});

test("a chat stream says reasoning in both fields that clients read, and never beside content", async () => {
  const expected: Chunk[] = [
    first,
    chunk({ reasoning_content: "Hm", reasoning: "Hm" }),
    chunk({ content: "Yes" }),
    chunk({}, "stop"),
  ];
  expect(await streamed([{ kind: "reasoning", text: "Hm" }, { kind: "text", text: "Yes" }, stop])).toEqual(expected);
});

test("a chat stream starts each call with its id, type, name and empty arguments, and goes on with arguments only", async () => {
  const expected: Chunk[] = [
    first,
    chunk({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "" } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
    chunk({ tool_calls: [{ index: 1, id: "call_2", type: "function", function: { name: "g", arguments: "" } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }),
    chunk({}, "tool_calls"),
  ];
  const events: AnswerEvent[] = [
    { kind: "tool-call-start", index: 0, id: "call_1", name: "f" },
    { kind: "tool-call-delta", index: 0, arguments: '{"a"' },
    { kind: "tool-call-start", index: 1, id: "call_2", name: "g" },
    { kind: "tool-call-delta", index: 0, arguments: ":1}" },
    stop,
  ];
  expect(await streamed(events)).toEqual(expected);
});

test("a chat stream tells usage only when asked: last, with no choices, and as null on every chunk before", async () => {
  const usage: AnswerEvent = {
    kind: "usage",
    promptTokens: 7,
    completionTokens: 2,
    cachedTokens: 3,
    reasoningTokens: 1,
  };
  const events: AnswerEvent[] = [usage, { kind: "text", text: "Hi" }, stop];
  const told: Chunk = {
    ...constant,
    choices: [],
    usage: {
      prompt_tokens: 7,
      completion_tokens: 2,
      total_tokens: 9,
      prompt_tokens_details: { cached_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 1 },
    },
  };
  const before: Chunk[] = [first, chunk({ content: "Hi" }), chunk({}, "stop")];
  expect(await streamed(events, { includeUsage: true })).toEqual([
    ...before.map((each) => ({ ...each, usage: null })),
    told,
  ]);
  expect(await streamed(events)).toEqual(before);
});

test("a chat stream has usage without details when the runtime knows none", async () => {
  const events: AnswerEvent[] = [stop, { kind: "usage", promptTokens: 7, completionTokens: 2 }];
  const [last] = (await streamed(events, { includeUsage: true })).slice(-1);
  expect(last).toEqual({
    ...constant,
    choices: [],
    usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
  } satisfies Chunk);
});

test("a chat stream has no system_fingerprint but a text, since OpenAI's types know no null there", async () => {
  const chunks = await chunksOf(rendered("chat-stream", regular([stop])));
  for (const { system_fingerprint: told } of chunks) expect(["undefined", "string"]).toContain(typeof told);
});
