import { expect, test } from "vitest";
import type { ChatMessage } from "#shared/protocol/job-bodies.ts";
import { imagesAfterResults } from "../../../services/agent/runtimes/images-after-results.ts";

const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } } as const;
const text = (words: string) => ({ type: "text", text: words }) as const;
const question: ChatMessage = { role: "user", content: "Look." };
const calls: ChatMessage = {
  role: "assistant",
  tool_calls: ["a", "b"].map((id) => ({ id, type: "function", function: { name: `look_${id}`, arguments: "{}" } })),
};
const result = (id: string, content: Extract<ChatMessage, { role: "tool" }>["content"]): ChatMessage => ({
  role: "tool",
  tool_call_id: id,
  content,
});
const shown = { role: "user", content: [text("The result of 'look_a':"), image] };

test("a conversation without images keeps its messages, with the text of its results", () => {
  const messages = [question, calls, result("a", "A cat."), result("b", [text("A "), text("dog.")])];
  expect(imagesAfterResults(messages)).toEqual([
    { message: question, at: 0 },
    { message: calls, at: 1 },
    { message: result("a", "A cat."), at: 2 },
    { message: result("b", "A dog."), at: 3 },
  ]);
});

test("an image follows the last result of its turn, so that no message stands between results", () => {
  const messages = [question, calls, result("a", [text("Here."), image]), result("b", "A dog.")];
  expect(imagesAfterResults(messages).slice(2)).toEqual([
    { message: result("a", "Here."), at: 2 },
    { message: result("b", "A dog."), at: 3 },
    { message: shown, at: 3 },
  ]);
});

test("a result that is only an image still has a text", () => {
  const [, , given] = imagesAfterResults([question, calls, result("a", [image]), result("b", "A dog.")]);
  expect(given?.message.content).toBe("The result is the image in the next message.");
});

test("an image joins the user's next message, since many templates refuse two messages of a user in a row", () => {
  const messages = [question, calls, result("a", [image]), result("b", ""), question];
  const placed = imagesAfterResults(messages);
  expect(placed).toHaveLength(5);
  expect(placed.at(-1)).toEqual({ message: { ...shown, content: [...shown.content, text("Look.")] }, at: 4 });
});

test("a later turn of the conversation begins with the same messages", () => {
  const turn = [question, calls, result("a", [image]), result("b", "A dog.")];
  const later = [...turn, { role: "assistant", content: "A cat and a dog." } as const, question];
  const before = imagesAfterResults(turn);
  const placed = imagesAfterResults(later);
  expect(placed.slice(0, before.length)).toEqual(before);
  expect(placed.slice(before.length)).toEqual([
    { message: later[4], at: 4 },
    { message: question, at: 5 },
  ]);
});
