import { expect, test } from "vitest";
import type { AnswerEvent, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import type { AnswerHead } from "../../../services/gateway/jobs/answer-parts.ts";
import { textCompletion, TextChunks } from "../../../services/gateway/apis/completions/render-text.ts";

const head: AnswerHead = { id: "cmpl-1", createdSeconds: 7, model: "llama3" };
const constant = { id: "cmpl-1", object: "text_completion", created: 7, model: "llama3" };

const likely = (...tokens: string[]): TokenLogprobs =>
  tokens.map((token, at) => {
    const told = { token, logprob: -1 - at, bytes: null };
    const top_logprobs = [...(at === 0 ? [told] : []), { token: "or", logprob: -9, bytes: null }];
    return { ...told, top_logprobs };
  });

const events: AnswerEvent[] = [
  { kind: "text", text: "Once upon", logprobs: likely("Once", " upon") },
  { kind: "text", choice: 1, text: "Two\n\ndata: [DONE]" },
  { kind: "text", text: " a time", logprobs: likely(" a", " time") },
  { kind: "finish", reason: "length" },
  { kind: "finish", choice: 1, reason: "tool_calls" },
  { kind: "usage", promptTokens: 3, completionTokens: 5 },
];
const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };

function chunksOf({ includeUsage = true } = {}): unknown[] {
  const renderer = new TextChunks(head, includeUsage);
  const text = Buffer.from(renderer.push(events)).toString() + Buffer.from(renderer.end()).toString();
  return text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event): unknown => JSON.parse(event.slice("data: ".length)));
}

test("a legacy completion as a stream says each piece in its choice, how each ended, and the usage where it is wanted", () => {
  const choice = (index: number, text: string, logprobs: object | null, finish_reason: string | null = null) => ({
    ...constant,
    choices: [{ text, index, logprobs, finish_reason }],
    usage: null,
  });
  const tops = (token: string, logprob: number) => ({ [token]: logprob, or: -9 });
  expect(chunksOf()).toEqual([
    choice(0, "Once upon", {
      tokens: ["Once", " upon"],
      token_logprobs: [-1, -2],
      top_logprobs: [tops("Once", -1), tops(" upon", -2)],
      text_offset: [0, 4],
    }),
    choice(1, "Two\n\ndata: [DONE]", null),
    choice(0, " a time", {
      tokens: [" a", " time"],
      token_logprobs: [-1, -2],
      top_logprobs: [tops(" a", -1), tops(" time", -2)],
      text_offset: [9, 11],
    }),
    choice(0, "", null, "length"),
    choice(1, "", null, "stop"),
    { ...constant, choices: [], usage },
  ]);
  for (const chunk of chunksOf({ includeUsage: false })) expect(chunk).not.toHaveProperty("usage");
  expect(chunksOf({ includeUsage: false })).toHaveLength(5);
});

test("a legacy completion in one piece says what its stream says", () => {
  const renderer = textCompletion(head);
  expect(renderer.push(events)).toHaveLength(0);
  const whole: unknown = JSON.parse(Buffer.from(renderer.end()).toString());
  expect(whole).toEqual({
    ...constant,
    choices: [
      {
        text: "Once upon a time",
        index: 0,
        logprobs: expect.objectContaining({ tokens: ["Once", " upon", " a", " time"], text_offset: [0, 4, 9, 11] }),
        finish_reason: "length",
      },
      { text: "Two\n\ndata: [DONE]", index: 1, logprobs: null, finish_reason: "stop" },
    ],
    usage,
  });
});

test("a legacy completion in one piece may not grow without end", () => {
  const renderer = textCompletion(head);
  const text = "x".repeat(1024 * 1024);
  expect(() => {
    for (let mib = 0; mib <= 16; mib += 1) renderer.push([{ kind: "text", text }]);
  }).toThrow(/wholeAnswerCharactersMax/);
});
