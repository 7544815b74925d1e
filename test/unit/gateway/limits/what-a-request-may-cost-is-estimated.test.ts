import { describe, expect, test } from "vitest";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import {
  answerTokens,
  estimateMax,
  estimatePrompt,
  estimateTexts,
  estimateTokens,
  imageTokens,
} from "../../../../services/gateway/limits/estimate-tokens.ts";

const saying = (text: string): ChatBody => ({ messages: [{ role: "user", content: text }] });
const picture = (url: string) => ({ type: "image_url" as const, image_url: { url } });

describe("what a request may cost", () => {
  test("is that of its texts alone when they are embedded", () => {
    expect(estimateTexts(["x".repeat(8)])).toBe(2);
    expect(estimateTexts(["x".repeat(7), "x".repeat(2)])).toBe(3);
    expect(estimateTexts(Array(2_048).fill("abcd"))).toBe(2_048);
  });

  test("is a token for every four characters of all that is said", () => {
    expect(estimatePrompt(saying("x".repeat(8)))).toBe(2);
    expect(estimatePrompt(saying("x".repeat(9)))).toBe(3);
    expect(estimatePrompt(saying(""))).toBe(0);
    const body: ChatBody = {
      messages: [
        { role: "system", content: [{ type: "text", text: "abcd" }] },
        {
          role: "assistant",
          content: null,
          reasoning_content: "abcd",
          tool_calls: [{ id: "1", type: "function", function: { name: "abcd", arguments: "abcdefgh" } }],
        },
        { role: "tool", content: "abcd", tool_call_id: "1" },
      ],
    };
    expect(estimatePrompt(body)).toBe(6);
  });

  test("has the definitions of tools in it", () => {
    const parameters = { type: "object" };
    const tool = { type: "function" as const, function: { name: "abcd", description: "abcd", parameters } };
    expect(estimatePrompt({ ...saying(""), tools: [tool] })).toBe(Math.ceil((8 + '{"type":"object"}'.length) / 4));
  });

  test("is the same for every image, whose bytes are not looked at", () => {
    const large = picture(`data:image/png;base64,${"A".repeat(30_000_000)}`);
    const content = [{ type: "text" as const, text: "abcd" }, large, picture("https://x.test/a.png")];
    expect(estimatePrompt({ messages: [{ role: "user", content }] })).toBe(1 + 2 * imageTokens);
  });

  test("has the longest answers in it that the request allows", () => {
    expect(estimateTokens(saying("abcd"))).toBe(1 + answerTokens);
    expect(estimateTokens({ ...saying("abcd"), max_tokens: 20 })).toBe(21);
    expect(estimateTokens({ ...saying("abcd"), max_tokens: 20, n: 3 })).toBe(61);
    expect(estimateTokens({ ...saying("abcd"), n: 2 })).toBe(1 + 2 * answerTokens);
  });

  test("is a number that every store can keep, whatever is asked for", () => {
    expect(estimateTokens({ ...saying("abcd"), max_tokens: Number.MAX_SAFE_INTEGER, n: 128 })).toBe(estimateMax);
  });
});
