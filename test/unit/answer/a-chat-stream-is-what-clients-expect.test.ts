import type { ChatCompletionChunk, ChatCompletionTokenLogprob } from "openai/resources/chat/completions";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { chunksOf, dataOf, head, regular, rendered, rendererFor, runtimeEvents, wholeOf } from "./answers.ts";
import { finish as stop, says, thinks, usage } from "./events.ts";
import * as fc from "fast-check";
import { eventsIn, payloadOf } from "../../harness/answer-payload.ts";

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

async function streamed(events: readonly AnswerEvent[], options: { includeUsage?: boolean } = {}): Promise<unknown[]> {
  const chunks = await chunksOf(rendered("chat-stream", regular(events), options));
  return chunks.map((each) => {
    const { system_fingerprint: _, ...rest } = each;
    return rest;
  });
}

test("a chat stream names the role once, in a first chunk of its own, and finishes in a last one with nothing else", async () => {
  const expected: Chunk[] = [first, chunk({ content: "Hel" }), chunk({ content: "lo" }), chunk({}, "stop")];
  expect(await streamed([says("Hel"), says("lo"), stop])).toEqual(expected);
});

test("a chat stream says reasoning in both fields that clients read, and never beside content", async () => {
  const expected: Chunk[] = [
    first,
    chunk({ reasoning_content: "Hm", reasoning: "Hm" }),
    chunk({ content: "Yes" }),
    chunk({}, "stop"),
  ];
  expect(await streamed([thinks("Hm"), says("Yes"), stop])).toEqual(expected);
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
  const events: AnswerEvent[] = [usage, says("Hi"), stop];
  const told: Chunk = {
    ...constant,
    choices: [],
    usage: {
      prompt_tokens: 7,
      completion_tokens: 5,
      total_tokens: 12,
      prompt_tokens_details: { cached_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 2 },
    },
  };
  const before: Chunk[] = [first, chunk({ content: "Hi" }), chunk({}, "stop")];
  expect(await streamed(events, { includeUsage: true })).toEqual([
    ...before.map((each) => ({ ...each, usage: null })),
    told,
  ]);
  expect(await streamed(events)).toEqual(before);
});

test("a chat stream has no system_fingerprint but a text, since OpenAI's types know no null there", async () => {
  const chunks = await chunksOf(rendered("chat-stream", regular([stop])));
  for (const { system_fingerprint: told } of chunks) expect(["undefined", "string"]).toContain(typeof told);
});

test("whatever a model says, a chat stream is one line of JSON for each event, and never says [DONE] itself", () => {
  fc.assert(
    fc.property(runtimeEvents, fc.boolean(), (events, includeUsage) => {
      for (const data of dataOf(rendered("chat-stream", regular(events), { includeUsage }))) {
        expect(JSON.parse(data)).toMatchObject({ id: head.id, created: head.createdSeconds, model: head.model });
      }
    }),
    { numRuns: 300 },
  );
});

test("whatever a model says, a chat stream is the same bytes however the events come in batches", () => {
  fc.assert(
    fc.property(runtimeEvents, fc.integer({ min: 2, max: 30 }), (events, batch) => {
      const all = regular(events);
      expect(rendered("chat-stream", all, { batch })).toBe(rendered("chat-stream", all, { batch: 1 }));
      expect(rendered("chat-whole", all, { batch })).toBe(rendered("chat-whole", all, { batch: 1 }));
    }),
  );
});

test("whatever a model says, a chat stream has one chunk with a role, the first, and one with a finish, the last with a choice", async () => {
  await fc.assert(
    fc.asyncProperty(runtimeEvents, fc.boolean(), async (events, includeUsage) => {
      const chunks = await chunksOf(rendered("chat-stream", regular(events), { includeUsage }));
      const choices = chunks.flatMap(({ choices: within }) => within);
      const told = choices.map(({ delta, finish_reason: finish }) => [delta.role !== undefined, finish !== null]);
      const middle = told.slice(1, -1).map(() => [false, false]);
      expect(told).toEqual([[true, false], ...middle, [false, true]]);
      expect(choices.at(-1)?.delta).toEqual({});
      for (const { delta } of choices.slice(1, -1)) expect(kindsIn(delta)).toHaveLength(1);
    }),
  );
});

test.each(["one\ntwo", "a\r\n\r\ndata: x", "a\u2028b\u2029c\u0085d", "data: [DONE]\n\n", "[DONE]", '"}]}\\', "🌍\0"])(
  "whatever a model says, a chat stream gives %j to OpenAI's client as one piece",
  async (text) => {
    const chunks = await chunksOf(rendered("chat-stream", regular([says(text), stop])));
    expect(chunks.map(({ choices }) => choices[0]?.delta.content)).toEqual(["", text, undefined]);
  },
);

/** Which kinds of output a delta holds; clients drop one of them when there are two. */
function kindsIn(delta: object): string[] {
  const kinds = [["content"], ["reasoning_content", "reasoning"], ["tool_calls"]];
  return kinds.filter((names) => names.some((name) => name in delta)).map((names) => names.join());
}

const probable = (token: string): ChatCompletionTokenLogprob => ({
  token,
  logprob: -0.25,
  bytes: [...Buffer.from(token)],
  top_logprobs: [
    { token, logprob: -0.25, bytes: [...Buffer.from(token)] },
    { token: "?", logprob: -2, bytes: null },
  ],
});
const events: AnswerEvent[] = [
  thinks("Hm"),
  { kind: "text", text: "Hel", logprobs: [probable("H"), probable("el")] },
  { kind: "text", text: "lo", logprobs: [probable("lo")] },
  stop,
];

test("logprobs are on the chunk of their text in a stream, and null on every other", async () => {
  const chunks = await chunksOf(rendered("chat-stream", regular(events)));
  expect(chunks.map(({ choices }) => choices[0]?.logprobs)).toEqual([
    null,
    null,
    { content: [probable("H"), probable("el")], refusal: null },
    { content: [probable("lo")], refusal: null },
    null,
  ]);
});

test("logprobs are those of all its tokens in a whole answer, and null where there are none", () => {
  const { choices } = wholeOf(rendered("chat-whole", regular(events)));
  const content = [probable("H"), probable("el"), probable("lo")];
  expect(choices[0]?.logprobs).toEqual({ content, refusal: null });
  const without = regular(events.filter(({ kind }) => kind !== "text"));
  expect(wholeOf(rendered("chat-whole", without)).choices[0]?.logprobs).toBeNull();
});

test("logprobs survive the wire", () => {
  expect(eventsIn(payloadOf(...events))).toEqual(events);
});

test("logprobs count in the length of a whole answer, since they are many times as long as their text", () => {
  const renderer = rendererFor("chat-whole", head);
  const logprobs = Array.from({ length: 150_000 }, () => probable("x"));
  expect(() => renderer?.push([{ kind: "text", text: "x", logprobs }])).toThrow(/wholeAnswerCharactersMax/);
});
