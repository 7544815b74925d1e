import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { OpenAiAnswer } from "../../../services/agent/runtimes/openai/openai-answer.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server.ts";

function read(chunks: readonly (object | string)[], { logprobs }: { readonly logprobs?: number } = {}) {
  const served = { profile: otherServer, model: { name: "m" } };
  const answer = new OpenAiAnswer({ prompt: "a", logprobs }, served);
  const events: AnswerEvent[] = [];
  for (const chunk of chunks) {
    const data = typeof chunk === "string" ? chunk : JSON.stringify(chunk);
    answer.read({ kind: "event", name: "", data }, events);
  }
  return { events, answer };
}

const said = (text: string, rest: object = {}) => ({ choices: [{ index: 0, text, finish_reason: null, ...rest }] });

test("an answer of /v1/completions may tell its finish with its last text, and its counts with either", () => {
  const usage = { prompt_tokens: 2, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } };
  const { events, answer } = read([said("a"), { ...said("b", { finish_reason: "length" }), usage }, "[DONE]"]);
  expect(events).toEqual([
    { kind: "text", text: "a" },
    { kind: "text", text: "b" },
    { kind: "finish", reason: "length" },
    { kind: "usage", promptTokens: 2, completionTokens: 3, cachedTokens: 1 },
  ]);
  expect(answer).toMatchObject({ hasOutput: true, isComplete: true, isOver: true, promptTokens: 2 });
});

test.each([
  ["an error", { error: { message: "it broke", code: 500 } }],
  ["a finish that is an error", said("", { finish_reason: "error" })],
  ["another choice than the one", { choices: [{ index: 1, text: "b" }] }],
  ["a text that is none", { choices: [{ index: 0, text: 5 }] }],
  ["no JSON", "{"],
])("an answer of /v1/completions fails with %s", (_, chunk) => {
  expect(() => read([said("a"), chunk])).toThrow(expect.objectContaining({ code: "upstream_error" }));
});

test("an answer of /v1/completions that begins with an error of the caller's is refused, and names the field", () => {
  const error = {
    message: "token_id(s) [999999] in logit_bias",
    type: "BadRequestError",
    param: "logit_bias",
    code: 400,
  };
  expect(() => read([{ error }])).toThrow(expect.objectContaining({ code: "bad_request", param: "logit_bias" }));
});

const lists = {
  text_offset: [0],
  token_logprobs: [-0.5],
  tokens: [" b"],
  top_logprobs: [{ " c": -2, " b": -0.5, " d": -1 }],
};

test("how likely tokens were is read from lists side by side, the likeliest others first and no more than were asked for", () => {
  expect(read([said(" b", { logprobs: lists })], { logprobs: 2 }).events).toEqual([
    {
      kind: "text",
      text: " b",
      logprobs: [
        {
          token: " b",
          logprob: -0.5,
          bytes: null,
          top_logprobs: [
            { token: " b", logprob: -0.5, bytes: null },
            { token: " d", logprob: -1, bytes: null },
          ],
        },
      ],
    },
  ]);
});

test("how likely tokens were is left out where nobody asked, and may else be missing later on, but not of the first text", () => {
  expect(read([said(" b", { logprobs: lists })]).events).toEqual([{ kind: "text", text: " b" }]);
  const { events } = read([said(" b", { logprobs: lists }), said("c", { logprobs: null })], { logprobs: 0 });
  expect(events.at(-1)).toEqual({ kind: "text", text: "c" });
  expect(() => read([said("c", { logprobs: null })], { logprobs: 0 })).toThrow(
    expect.objectContaining({ code: "unsupported_parameter", param: "logprobs" }),
  );
});
