import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { ResponseRenderer } from "../../../services/gateway/apis/responses/render-response.ts";
import { readRequest, rendererOf, renderingOf } from "../../harness/read-requests.ts";
import { hello, readChat } from "./chat-requests.ts";
import { faultOf, readResponse } from "./response-requests.ts";

const grammar = { type: "grammar", syntax: "lark", definition: 'start: "a"+' };
const patch = { type: "custom", name: "apply_patch", description: "Changes files." };
const head = { id: "resp_1", createdSeconds: 7, model: "llama3" };
const usage = { kind: "usage", promptTokens: 7, completionTokens: 5 } as const;

const answered = (...pieces: string[]): AnswerEvent[] => [
  { kind: "tool-call-start", index: 0, id: "call_1", name: "apply_patch" },
  ...pieces.map((piece): AnswerEvent => ({ kind: "tool-call-delta", index: 0, arguments: piece })),
  { kind: "finish", reason: "tool_calls" },
  usage,
];

test("a custom tool of the Responses API is a function of one text to a model, which reads the grammar in its description", () => {
  const { body, ignored } = readResponse({ tools: [{ ...patch, format: grammar }] });
  expect(body.tools).toEqual([
    {
      type: "function",
      function: {
        name: "apply_patch",
        description: `Changes files.\n\n'input' must match this lark grammar:\n${grammar.definition}`,
        parameters: expect.objectContaining({ required: ["input"] }),
      },
    },
  ]);
  expect(ignored).toEqual(["tools[0].format"]);
  expect(readResponse({ tools: [{ ...patch, format: { type: "text" } }] }).ignored).toEqual([]);
});

test("a custom tool of the Responses API may be chosen, alone or among others, and may stand in a namespace", () => {
  const weather = { type: "function", name: "weather" };
  const tool_choice = { type: "custom", name: "apply_patch" };
  const named = { type: "function", function: { name: "apply_patch" } };
  expect(readResponse({ tools: [patch, weather], tool_choice }).body.tool_choice).toEqual(named);
  const allowed = { type: "allowed_tools", mode: "auto", tools: [tool_choice] };
  expect(readResponse({ tools: [patch, weather], tool_choice: allowed }).body.tools).toHaveLength(1);
  const tools = [{ type: "namespace", name: "files", tools: [{ ...patch, format: grammar }] }];
  const { body, form, ignored } = readResponse({ tools });
  expect(body.tools?.[0]?.function.name).toBe("files__apply_patch");
  expect([...form.terms.called]).toEqual([
    ["files__apply_patch", { is: "custom", namespace: "files", name: "apply_patch" }],
  ]);
  expect(ignored).toEqual(["tools[0].tools[0].format"]);
});

test("a custom tool of the Responses API was called with a text, and answered it", () => {
  const call = { type: "custom_tool_call", id: "ctc_1", call_id: "call_1", name: "apply_patch", input: 'a\n"b"' };
  const output = { type: "custom_tool_call_output", call_id: "call_1", output: "Done." };
  const { body, ignored } = readResponse({ input: [call, output], tools: [patch] });
  const made = { name: "apply_patch", arguments: String.raw`{"input":"a\n\"b\""}` };
  expect(body.messages).toEqual([
    { role: "assistant", tool_calls: [{ id: "call_1", type: "function", function: made }] },
    { role: "tool", tool_call_id: "call_1", content: "Done." },
  ]);
  expect(ignored).toEqual([]);
  expect(faultOf({ input: [call] })).toMatchObject({ code: "tool_messages_out_of_order" });
});

test.each([
  ["JSON", ['{"inp', 'ut":"a\\n', 'b"}'], "a\nb"],
  ["a bare text, against its instructions", ["*** Begin", " Patch"], "*** Begin Patch"],
  ["JSON of another form", ['{"patch":"a"}'], '{"patch":"a"}'],
  ["nothing", [], ""],
])("a custom tool of the Responses API is called with the text that a model wrote as %s", (_, pieces, input) => {
  const { terms } = readResponse({ tools: [patch] }).form;
  const whole = new ResponseRenderer(head, terms, { streamed: false });
  whole.push(answered(...pieces));
  const { output } = JSON.parse(Buffer.from(whole.end()).toString()) as { output: object[] };
  const item = { type: "custom_tool_call", status: "completed", call_id: "call_1", name: "apply_patch", input };
  expect(output).toEqual([{ id: expect.stringMatching(/^ctc_/), ...item }]);
});

test("a custom tool of the Responses API is called in a stream by one piece of text, between the beginning and the end of its item", () => {
  const stream = new ResponseRenderer(head, readResponse({ tools: [patch] }).form.terms, { streamed: true });
  const text = Buffer.concat([stream.push(answered('{"input":', '"a"}')), stream.end()]).toString();
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as { type: string });
  expect(events.slice(2, -1)).toMatchObject([
    { type: "response.output_item.added", item: { type: "custom_tool_call", input: "", status: "in_progress" } },
    { type: "response.custom_tool_call_input.delta", delta: "a", output_index: 0 },
    { type: "response.custom_tool_call_input.done", input: "a" },
    { type: "response.output_item.done", item: { input: "a", status: "completed" } },
  ]);
  expect(events.at(-1)).toMatchObject({ response: { tools: [{ ...patch, format: { type: "text" } }] } });
});

const custom = { name: "apply_patch", description: "Changes files." };
const tool = { type: "custom", custom };
const weather = { type: "function", function: { name: "weather" } };

test("a custom tool of a chat is a function of one text to a model, which reads the grammar in its description", () => {
  const { syntax, definition } = grammar;
  const format = { type: "grammar", grammar: { syntax, definition } };
  const { body, ignored } = readChat({ tools: [weather, { type: "custom", custom: { ...custom, format } }] });
  expect(body.tools?.[1]).toEqual(readResponse({ tools: [{ ...patch, format: grammar }] }).body.tools?.[0]);
  expect(ignored).toEqual(["tools[1].custom.format"]);
  const plain = { ...custom, format: { type: "text" } };
  expect(readChat({ tools: [{ type: "custom", custom: plain }] }).ignored).toEqual([]);
});

test("a custom tool of a chat may be chosen, alone or among others", () => {
  const tool_choice = { type: "custom", custom: { name: "apply_patch" } };
  const named = { type: "function", function: { name: "apply_patch" } };
  expect(readChat({ tools: [tool, weather], tool_choice }).body.tool_choice).toEqual(named);
  const allowed = { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [tool_choice] } };
  expect(readChat({ tools: [tool, weather], tool_choice: allowed }).body.tools).toHaveLength(1);
});

test("a custom tool of a chat was called with a text in an earlier turn", () => {
  const call = { id: "call_1", type: "custom", custom: { name: "apply_patch", input: 'a\n"b"' } };
  const result = { role: "tool", tool_call_id: "call_1", content: "Done." };
  const { body, ignored } = readChat({ messages: [{ role: "assistant", tool_calls: [call] }, result], tools: [tool] });
  const made = { name: "apply_patch", arguments: String.raw`{"input":"a\n\"b\""}` };
  expect(body.messages).toEqual([
    { role: "assistant", tool_calls: [{ id: "call_1", type: "function", function: made }] },
    result,
  ]);
  expect(ignored).toEqual([]);
});

const two: AnswerEvent[] = [
  { kind: "tool-call-start", index: 0, id: "call_1", name: "apply_patch" },
  { kind: "tool-call-delta", index: 0, arguments: '{"inp' },
  { kind: "tool-call-start", index: 1, id: "call_2", name: "weather" },
  { kind: "tool-call-delta", index: 1, arguments: "{}" },
  { kind: "tool-call-delta", index: 0, arguments: 'ut":"a\\nb"}' },
  { kind: "finish", reason: "tool_calls" },
];
const render = (streamed: boolean): string => {
  const input = Buffer.from(JSON.stringify({ model: "llama3", messages: [hello], tools: [tool, weather] }));
  const { form } = readRequest("chat", input);
  const renderer = rendererOf(renderingOf("chat", form, { streamed }), head);
  return Buffer.concat([renderer.push(two), renderer.end()]).toString();
};

test("a custom tool of a chat is called beside a function, each in its own shape", () => {
  const { choices } = JSON.parse(render(false)) as { choices: { message: { tool_calls: object[] } }[] };
  expect(choices[0]?.message.tool_calls).toEqual([
    { id: "call_1", type: "custom", custom: { name: "apply_patch", input: "a\nb" } },
    { id: "call_2", type: "function", function: { name: "weather", arguments: "{}" } },
  ]);
});

test("a custom tool of a chat gets its text in one piece of a stream, before the finish", () => {
  const chunks = [...render(true).matchAll(/^data: (\{.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as Chunk);
  const pieces = chunks.flatMap(({ choices: [choice] }) => choice?.delta.tool_calls ?? []);
  expect(pieces).toEqual([
    { index: 0, id: "call_1", type: "custom", custom: { name: "apply_patch", input: "" } },
    { index: 1, id: "call_2", type: "function", function: { name: "weather", arguments: "" } },
    { index: 1, function: { arguments: "{}" } },
    { index: 0, custom: { input: "a\nb" } },
  ]);
  const last = chunks.filter(({ choices: [choice] }) => choice !== undefined).at(-1);
  expect(last?.choices[0]).toMatchObject({ delta: {}, finish_reason: "tool_calls" });
});

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly tool_calls?: object[] } }[];
}
