import { expect, test } from "vitest";
import { faultOf, hello, readChat, thrownBy } from "./chat-requests.ts";

const call = (id: string) => ({ id, type: "function", function: { name: "weather", arguments: "{}" } });
const asks = (...ids: string[]) => ({ role: "assistant", content: null, tool_calls: ids.map(call) });
const answers = (id: string) => ({ role: "tool", tool_call_id: id, content: "12 °C" });
const goesOn = { role: "assistant", content: "It is 12 °C." };

test.each([
  ["one call and its answer", [hello, asks("a"), answers("a")]],
  ["several calls, answered in any order", [hello, asks("a", "b"), answers("b"), answers("a"), goesOn, hello]],
  ["a call for each of two questions", [asks("a"), answers("a"), goesOn, hello, asks("a"), answers("a")]],
  ["an answer that comes twice", [hello, asks("a"), answers("a"), answers("a")]],
  ["a call after another without words between", [asks("a"), answers("a"), asks("b"), answers("b")]],
])("messages of tools are taken in order: %s", (_, messages) => {
  expect(readChat({ messages }).body.messages).toEqual(messages);
});

test.each([
  ["an answer to nothing", [hello, answers("a")], "messages[1].role"],
  ["an answer at the very beginning", [answers("a"), hello], "messages[0].role"],
  ["an answer to another call", [hello, asks("a"), answers("b")], "messages[2].role"],
  ["an answer after somebody spoke", [asks("a"), answers("a"), hello, answers("a")], "messages[3].role"],
  ["a call that nobody answers", [asks("a"), hello], "messages[1].role"],
  ["a call of two that nobody answers", [asks("a", "b"), answers("a"), goesOn], "messages[2].role"],
  ["a call at the very end", [hello, asks("a")], "messages[1]"],
])("messages of tools are refused out of order: %s", (_, messages, param) => {
  expect(faultOf({ messages })).toEqual({ code: "tool_messages_out_of_order", param });
});

test("messages of tools are refused when nobody could tell which of two calls is answered", () => {
  const messages = [hello, asks("a", "a"), answers("a")];
  expect(faultOf({ messages })).toEqual({ code: "invalid_value", param: "messages[1].tool_calls" });
});

test("messages of tools are told which calls have no answer, but not all of very many", () => {
  const ids = Array.from({ length: 40 }, (_, at) => `call_${at}`);
  const { message } = thrownBy({ messages: [asks(...ids), ...ids.slice(0, 3).map(answers), hello] });
  expect(message).toContain("'call_3', 'call_4', 'call_5', 'call_6', 'call_7' and 32 more.");
});
