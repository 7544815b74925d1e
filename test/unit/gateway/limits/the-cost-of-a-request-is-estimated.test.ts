import { expect, test } from "vitest";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import {
  usualAnswerTokens,
  estimateMax,
  estimatePrompt,
  estimateTexts,
  estimateTokens,
  imageTokens,
  chatCeiling,
  clampTokens,
  completionCeiling,
  embeddingCeiling,
} from "../../../../services/gateway/limits/token-estimates.ts";

const saying = (text: string): ChatBody => ({ messages: [{ role: "user", content: text }] });
const picture = (url: string) => ({ type: "image_url" as const, image_url: { url } });

const words = "The quick brown fox jumps over the lazy dog.";
const tokensOfWords = estimateTexts([words]);

test("the estimated cost of a request is that of its texts alone when they are embedded", () => {
  expect(tokensOfWords).toBeGreaterThanOrEqual(10);
  expect(estimateTexts([])).toBe(0);
  expect(estimateTexts(Array(100).fill(words)) / 100).toBeCloseTo(tokensOfWords, -1);
});

test("the estimated cost of a request is that of all that is said, in the order of the conversation", () => {
  expect(estimatePrompt(saying(words))).toBe(tokensOfWords);
  expect(estimatePrompt(saying(""))).toBe(0);
  const body: ChatBody = {
    messages: [
      { role: "system", content: [{ type: "text", text: words }] },
      {
        role: "assistant",
        content: null,
        reasoning_content: words,
        tool_calls: [{ id: "1", type: "function", function: { name: "fox", arguments: words } }],
      },
      { role: "tool", content: words, tool_call_id: "1" },
    ],
  };
  expect(estimatePrompt(body)).toBe(estimateTexts([words, words, "fox", words, words]));
});

test("the estimated cost of a request has the definitions of tools in it", () => {
  const parameters = { type: "object" };
  const tool = { type: "function" as const, function: { name: "fox", description: words, parameters } };
  expect(estimatePrompt({ ...saying(""), tools: [tool] })).toBe(estimateTexts(["fox", words, '{"type":"object"}']));
});

test("the estimated cost of a request is the same for every image, whose bytes are not looked at", () => {
  const large = picture(`data:image/png;base64,${"A".repeat(30_000_000)}`);
  const content = [{ type: "text" as const, text: words }, large, picture("https://x.test/a.png")];
  expect(estimatePrompt({ messages: [{ role: "user", content }] })).toBe(tokensOfWords + 2 * imageTokens);
});

test("the estimated cost of a request has the longest answers in it that the request allows", () => {
  expect(estimateTokens(saying(words))).toBe(tokensOfWords + usualAnswerTokens);
  expect(estimateTokens({ ...saying(words), max_tokens: 20 })).toBe(tokensOfWords + 20);
  expect(estimateTokens({ ...saying(words), max_tokens: 20, n: 3 })).toBe(tokensOfWords + 60);
  expect(estimateTokens({ ...saying(words), n: 2 })).toBe(tokensOfWords + 2 * usualAnswerTokens);
});

test("the estimated cost of a request is a number that every store can keep, whatever is asked for", () => {
  expect(estimateTokens({ ...saying("abcd"), max_tokens: Number.MAX_SAFE_INTEGER, n: 128 })).toBe(estimateMax);
});

const believed = (ceiling: ReturnType<typeof chatCeiling>): object =>
  clampTokens({ promptTokens: 1e12, completionTokens: 1e12 }, ceiling, 100_000);

test("the most that a machine is believed of a request's tokens is the bytes of a chat's body without its images, 256 for each message and tool, and 16,384 for each image", () => {
  const url = `data:image/png;base64,${"A".repeat(30_000)}`;
  const parameters = { type: "object" };
  const body: ChatBody = {
    messages: [
      { role: "system", content: "Be short." },
      { role: "user", content: [{ type: "text", text: "What is this?" }, picture(url), picture(url)] },
    ],
    tools: [{ type: "function", function: { name: "look", parameters } }],
  };
  const bodyBytes = Buffer.byteLength(JSON.stringify(body));
  const promptTokens = bodyBytes - 2 * url.length + 3 * 256 + 2 * 16_384;
  expect(believed(chatCeiling(body, bodyBytes))).toEqual({ promptTokens, completionTokens: 100_000 });
});

test("the most that a machine is believed of a request's tokens is max_tokens for each answer, and never more than the window", () => {
  expect(believed(chatCeiling({ ...saying("a"), max_tokens: 20, n: 3 }, 60))).toMatchObject({ completionTokens: 60 });
  const greedy = chatCeiling({ ...saying("a"), max_tokens: 1e9 }, 1e9);
  expect(believed(greedy)).toEqual({ promptTokens: 100_000, completionTokens: 100_000 });
});

test("the most that a machine is believed of a request's tokens is counted for each prompt of a completion, and for each answer to each prompt", () => {
  const ceiling = completionCeiling({ prompts: ["a", "b"], n: 3, max_tokens: 20 }, 50);
  expect(believed(ceiling)).toEqual({ promptTokens: 50 + 2 * 256, completionTokens: 120 });
  const long = completionCeiling({ prompts: ["a", "b"] }, 1e9);
  expect(believed(long)).toEqual({ promptTokens: 200_000, completionTokens: 200_000 });
});

test("the most that a machine is believed of a request's tokens is no token of an answer for embeddings", () => {
  expect(believed(embeddingCeiling({ input: ["a", "b"] }, 50))).toEqual({ promptTokens: 562, completionTokens: 0 });
});
