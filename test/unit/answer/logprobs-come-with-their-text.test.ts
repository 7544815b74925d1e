import type { ChatCompletionTokenLogprob } from "openai/resources/chat/completions";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { chunksOf, head, regular, rendered, rendererFor, wholeOf } from "./answers.ts";
import { eventsIn, payloadOf } from "../../harness/answer-payload.ts";

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
  { kind: "reasoning", text: "Hm" },
  { kind: "text", text: "Hel", logprobs: [probable("H"), probable("el")] },
  { kind: "text", text: "lo", logprobs: [probable("lo")] },
  { kind: "finish", reason: "stop" },
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
