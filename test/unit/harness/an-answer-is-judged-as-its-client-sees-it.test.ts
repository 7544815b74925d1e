import { expect, test } from "vitest";
import { judgeAnswer, type Outcome, type Received } from "../../harness/load/judge-answer.ts";
import { scriptedChat, textOf } from "../../harness/load/scripted-chat.ts";

const chat = scriptedChat({ tokens: 3 });
const whole = textOf(chat);
const prefix = whole.slice(0, whole.indexOf(" ") + 1);
const stream: Received = {
  status: 200,
  text: whole,
  code: undefined,
  message: undefined,
  success: true,
  closed: true,
  retryAfter: undefined,
};

const rows: readonly [string, Partial<Received>, Outcome][] = [
  ["the whole text and its end", {}, "exact"],
  ["a prefix and an error", { text: prefix, success: false, code: "stream_gap" }, "cut short and told"],
  ["an error alone, in an event", { text: "", success: false, code: "stream_gap" }, "cut short and told"],
  ["a status with its error", { status: 503, text: "", success: false, code: "agent_offline" }, "refused"],
  ["a status without any error", { status: 503, text: "", success: false }, "silent"],
  ["a connection that breaks", { text: prefix, success: false, closed: false }, "broken off"],
  ["nothing at all", { status: undefined, text: "", success: false, closed: false }, "broken off"],
  ["an end without a word", { text: prefix, success: false }, "silent"],
  ["the whole text without its end", { success: false }, "silent"],
  ["a prefix that ends like a success", { text: prefix }, "silent"],
  ["an error that ends like a success", { text: prefix, code: "stream_gap" }, "silent"],
  ["a hole", { text: whole.replace(`${chat.nonce}-1 `, "") }, "foreign"],
  ["a token twice", { text: prefix + whole }, "foreign"],
  ["what somebody else was told", { text: textOf(scriptedChat({ tokens: 3 })) }, "foreign"],
];

test.for(rows)("an answer is judged as its client sees it: %s", ([, received, outcome]) => {
  expect(judgeAnswer(chat, { ...stream, ...received })).toBe(outcome);
});
