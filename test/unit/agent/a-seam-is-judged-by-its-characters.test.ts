import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { chatOf, cutsOf, differenceOf, Heard, seamOf, trialsOf } from "../../../services/agent/models/seam-trials.ts";

const able = { completion: true, vision: false, embedding: false, tools: false, thinking: false };
const plainTrial = { question: "?", effort: undefined, tools: false, mayThink: false };

function heard(pieces: readonly string[], more: { thought?: string; calls?: boolean; whole?: boolean } = {}): Heard {
  const answer = new Heard();
  const { thought = "", calls = false, whole = false } = more;
  const events: AnswerEvent[] = [
    ...(thought === "" ? [] : [{ kind: "reasoning", text: thought } as const]),
    ...pieces.map((text) => ({ kind: "text", text }) as const),
    ...(calls ? [{ kind: "tool-call-start", index: 0, name: "ring" } as const] : []),
    { kind: "finish", reason: whole ? "stop" : "length" },
  ];
  answer.take(events);
  return answer;
}

const words = Array.from({ length: 20 }, (_, at) => `w${at} `);

test("an answer is cut early, in mid-word near the middle, and late behind white space", () => {
  const pieces = "One| two| three| un|believ|able| four| five|\n|six| seven| eight".split("|");
  expect(cutsOf(pieces)).toEqual([2, 5, 9]);
});

test("an answer is cut at three places in any case, and never at an end", () => {
  expect(cutsOf(words.map((word) => ` ${word.trim()}`))).toEqual([3, 10, 16]);
  for (const at of cutsOf(words.slice(0, 12))) {
    expect(at).toBeGreaterThan(0);
    expect(at).toBeLessThan(12);
  }
});

const whole = heard(words, { whole: true });
const cutOff = heard(words);
const rest = words.slice(8);

test("a continuation is right if it equals the rest, up to where the answer was read", () => {
  expect(differenceOf(whole, 8, heard(rest, { whole: true }))).toBeUndefined();
  expect(differenceOf(cutOff, 8, heard([...rest, "more"]))).toBeUndefined();
});

test.each([
  ["repeats the answer", heard(words), "it begins anew"],
  ["drops a space", heard(["w8w9 ", ...rest.slice(2)]), "2 of 46 characters are equal"],
  ["doubles a token", heard(["w8 ", ...rest]), "4 of 46 characters are equal"],
  ["is too short", heard(rest.slice(0, -1)), "42 of 46 characters are equal"],
  ["thinks again", heard(rest, { thought: "Well" }), "it thinks again"],
  ["calls a tool", heard(rest, { calls: true }), "it calls a tool"],
])("a continuation that %s is told so", (_, continued, difference) => {
  expect(differenceOf(cutOff, 8, continued)).toBe(difference);
});

test("a continuation that goes on behind the end is wrong", () => {
  expect(differenceOf(whole, 8, heard([...rest, "more"], { whole: true }))).toBe(
    "it does not end where the answer ends",
  );
  expect(differenceOf(whole, 8, heard(rest))).toBe("it does not end where the answer ends");
});

test("a whole answer is of the kind that it shows", () => {
  const tools = { ...plainTrial, tools: true };
  expect(seamOf(plainTrial, heard(words))).toBe("plain");
  expect(seamOf(plainTrial, heard(words, { thought: "Well" }))).toBe("thought");
  expect(seamOf(tools, heard(words))).toBe("tools");
  expect(seamOf(tools, heard(words, { thought: "Well" }))).toBe("tools and thought");
});

test("a whole answer proves nothing when it is short or calls a tool", () => {
  expect(seamOf(plainTrial, heard(words.slice(0, 11)))).toBeUndefined();
  expect(seamOf(plainTrial, heard(words, { calls: true }))).toBeUndefined();
});

test("a model is asked with and without thoughts and tools, as far as it has them", () => {
  const asked = (more: Partial<typeof able>): unknown[] =>
    trialsOf({ ...able, ...more }).map(({ effort, tools }) => [effort ?? "default", tools]);
  expect(asked({})).toEqual([["default", false]]);
  expect(asked({ thinking: true, tools: true })).toEqual([
    ["default", false],
    ["none", false],
    ["default", true],
    ["none", true],
  ]);
});

test("the rest is asked for as a gateway asks for it: the same chat, with the answer so far at its end", () => {
  const trial = { question: "Hello?", effort: "none", tools: true, mayThink: false } as const;
  const begun = chatOf(trial, { pieces: ["Good ", "day"], thought: "Polite." });
  const { messages, max_tokens: _, ...fields } = begun;
  expect(messages).toEqual([
    { role: "user", content: "Hello?" },
    { role: "assistant", content: "Good day", reasoning_content: "Polite." },
  ]);
  expect(chatOf(trial)).toMatchObject(fields);
  expect(fields).toMatchObject({ temperature: 0, reasoning_effort: "none", tools: [expect.anything()] });
});

test("only an answer that may begin with a thought gets tokens for one", () => {
  const limits = (thinking: boolean): (number | undefined)[] =>
    trialsOf({ ...able, thinking }).map((trial) => chatOf(trial).max_tokens);
  expect(limits(false)).toEqual([48]);
  expect(limits(true)).toEqual([648, 48]);
});
