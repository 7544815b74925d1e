import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { pickChunk } from "../../../services/agent/runtimes/openai/openai-answer.ts";

test("a chunk of an OpenAI-shaped server may write null for every field that it has nothing for", () => {
  const delta = { content: null, reasoning: null, reasoning_content: null, tool_calls: null };
  const choice = { index: null, delta, finish_reason: null, logprobs: null };
  expect(pickChunk({ choices: [choice], usage: null })).toEqual({
    choices: [{ index: 0, calls: [], logprobs: null }],
    usage: undefined,
  });
  expect(pickChunk({ choices: null })).toEqual({ choices: [], usage: undefined });
});

test("a chunk of an OpenAI-shaped server reports usage, and a malformed count in it counts as missing", () => {
  const details = { prompt_tokens_details: { cached_tokens: 2 }, completion_tokens_details: "secret" };
  expect(pickChunk({ usage: { prompt_tokens: 3, completion_tokens: -1, ...details } }).usage).toEqual({
    kind: "usage",
    promptTokens: 3,
    completionTokens: 0,
    cachedTokens: 2,
  });
  expect(pickChunk({ usage: { prompt_tokens: "3" } }).usage).toBeUndefined();
});

test.each([
  ["a chunk that is a list", []],
  ["no chunk at all", null],
  ["choices that are no list", { choices: "secret" }],
  ["a choice that is a text", { choices: ["secret"] }],
  ["a delta that is a list", { choices: [{ delta: ["secret"] }] }],
  ["a text that is a number", { choices: [{ delta: { content: 7 } }] }],
  ["an index below zero", { choices: [{ index: -1 }] }],
  ["arguments that are a list", { choices: [{ delta: { tool_calls: [{ function: { arguments: ["secret"] } }] } }] }],
])("a chunk of an OpenAI-shaped server with %s is a fault that quotes nothing of it", (_, value) => {
  const pick = (): Fault => {
    try {
      pickChunk(value);
    } catch (error) {
      return Fault.from(error);
    }
    throw new Error("no fault");
  };
  expect(pick()).toMatchObject({ code: "upstream_error" });
  expect(`${pick().message} ${pick().internal}`).not.toContain("secret");
});
