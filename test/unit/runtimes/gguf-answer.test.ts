import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { chatBody } from "#shared/protocol/chat-body.ts";
import { GgufAnswer } from "../../../services/agent/runtimes/llama/gguf-answer.ts";
import type { CallSyntax } from "../../../services/agent/runtimes/llama/gguf-call-syntax.ts";

const thoughts = { open: "<think>", close: "</think>" };
const json = { kind: "json", nameKey: "name", argumentsKey: "arguments", inArray: false } as const;
const tagged: CallSyntax = {
  begin: "<tool_call>",
  again: "<tool_call>",
  ends: ["</tool_call>"],
  form: json,
  argumentsAs: "object",
};
const bare: CallSyntax = { ...tagged, begin: "", again: undefined, ends: [] };
const onChannel: CallSyntax = {
  begin: "to=functions.",
  again: undefined,
  ends: ["<|call|>"],
  form: { kind: "named", between: "<|channel|>commentary json<|message|>" },
  argumentsAs: "object",
};

interface Given {
  readonly calls?: CallSyntax;
  readonly onChannels?: boolean;
  readonly thinking?: boolean;
  readonly asked?: object;
  readonly cutOff?: boolean;
}

/** What is understood of a text that comes in these pieces: thoughts, answer, calls. */
function read(pieces: readonly string[], given: Given = {}): [string, string, string[]] {
  const { calls, onChannels = false, thinking = false, asked = {}, cutOff = false } = given;
  const tools = [{ type: "function", function: { name: "look" } }];
  const messages = [{ role: "user", content: "?" }];
  const body = chatBody.parse({ messages, ...(calls && { tools }), ...asked });
  const template = { thoughts: onChannels ? undefined : thoughts, onChannels, calls };
  const answer = new GgufAnswer({ template, body, thinking });
  const events = [...pieces.flatMap((piece) => answer.push(piece)), ...answer.end(cutOff)];
  const said = (kind: AnswerEvent["kind"]): string =>
    events.map((event) => (event.kind === kind && "text" in event ? event.text : "")).join("");
  const called = events.flatMap((event) =>
    event.kind === "tool-call-start" ? [event.name] : event.kind === "tool-call-delta" ? [event.arguments] : [],
  );
  return [said("reasoning"), said("text"), called];
}

describe("an answer is read", () => {
  test("with its thoughts apart, without the line breaks around them", () => {
    expect(read(["<think>\nOne.\nTwo.\n</think>\n\nYes.\n"])).toEqual(["One.\nTwo.", "Yes.\n", []]);
  });

  test("with thoughts that the prompt has begun", () => {
    expect(read(["One.</thi", "nk>Yes."], { thinking: true })).toEqual(["One.", "Yes.", []]);
  });

  test("with text that only looks like a mark", () => {
    expect(read(["a <thin", "g> b </tool_call> {", '"name": 1}'])).toEqual([
      "",
      'a <thing> b </tool_call> {"name": 1}',
      [],
    ]);
  });

  test("with a call after text, and none within thoughts", () => {
    const text = `<think><tool_call>no</think>Let me.\n<tool_call>{"name":"look","arguments":{"at":"}"}}</tool_call>`;
    expect(read([text], { calls: tagged })).toEqual(["<tool_call>no", "Let me.\n", ["look", `{"at":"}"}`]]);
  });

  test("with marks of calls as text where no tools are offered", () => {
    expect(read([`<tool_call>{}</tool_call>`])).toEqual(["", "<tool_call>{}</tool_call>", []]);
  });

  test("with a call that stands for itself, if it names a tool that was offered", () => {
    const other = `{"name": "listen", "arguments": {}}`;
    expect(read([` {"name": "look", `, `"arguments": {}}`], { calls: bare })).toEqual(["", "", ["look", "{}"]]);
    expect(read([other], { calls: bare })).toEqual(["", other, []]);
    expect(read(["[1, 2"], { calls: bare })).toEqual(["", "[1, 2", []]);
  });

  test("by its channels", () => {
    const answer = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.";
    expect(read([answer], { onChannels: true })).toEqual(["Hm.", "Yes.", []]);
    const call = `<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"at": 1}`;
    expect(read([call], { onChannels: true, calls: onChannel })).toEqual(["", "", ["look", `{"at":1}`]]);
  });

  test("up to a stop string in the text, but not in thoughts", () => {
    expect(read(["<think>stop</think>a stop b"], { asked: { stop: ["stop"] } })).toEqual(["stop", "a ", []]);
  });

  test("the same however its pieces are cut", () => {
    const whole = `<think>\n a<b \n</think>\n\ntext <tool <tool_call>\n{"name": "look", "arguments": {"s": "\\"}</tool_call>"}}\n</tool_call>\n<tool_call>{"name":"look"}</tool_call>`;
    const expected = read([whole], { calls: tagged });
    expect(expected[2]).toEqual(["look", `{"s":"\\"}</tool_call>"}`, "look", "{}"]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: whole.length })), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), whole.length];
        const pieces = at.slice(1).map((end, index) => whole.slice(at[index], end));
        expect(read(pieces, { calls: tagged })).toEqual(expected);
      }),
    );
  });
});

describe("a call that makes no sense", () => {
  test.each([
    `<tool_call>{"name": "look", "arguments": "text"}</tool_call>`,
    `<tool_call>{"name": 1}</tool_call>`,
    `<tool_call>{name: look}</tool_call>`,
    `<tool_call>{"name": "look"`,
    `<tool_call>${"no call at all ".repeat(100)}`,
  ])("is a fault: %.60s", (text) => {
    expect(() => read([text], { calls: tagged })).toThrow("called a tool in a way that could not be understood");
  });

  test("is none when the answer was cut off in it", () => {
    expect(read([`a<tool_call>{"name": "lo`], { calls: tagged, cutOff: true })).toEqual(["", "a", []]);
  });
});
