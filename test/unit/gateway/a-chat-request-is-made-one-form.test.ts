import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { readChatRequest } from "../../../services/gateway/apis/chat/chat-request.ts";
import { hello, picture, readChat, weather } from "./chat-requests.ts";

const textPart = { type: "text", text: "Hi" };

test("a chat request needs a model and messages only", () => {
  expect(readChat()).toEqual({
    model: "llama3",
    stream: false,
    imageParam: undefined,
    ignored: [],
    form: { includeUsage: false, tellsCost: false, custom: [], sentNames: {} },
    body: { messages: [hello] },
  });
});

test("a chat request is handed on with everything that changes the answer, and without what is the gateway's", () => {
  const fields = {
    tools: [weather],
    tool_choice: { type: "function", function: { name: "weather" } },
    parallel_tool_calls: false,
    max_tokens: 5,
    temperature: 0,
    top_p: 1,
    frequency_penalty: -2,
    presence_penalty: 2,
    seed: -7,
    n: 2,
    stop: ["a", "b"],
    logprobs: true,
    top_logprobs: 3,
    logit_bias: { "50256": -100 },
    reasoning_effort: "low",
    response_format: { type: "json_schema", json_schema: { name: "x", schema: { a: { b: 1 } }, strict: true } },
  };
  const read = readChat({ ...fields, stream: true, stream_options: { include_usage: true } });
  expect(read).toMatchObject({ stream: true, form: { includeUsage: true }, ignored: [] });
  expect(read.body).toEqual({ messages: [hello], ...fields });
});

test("a chat request takes every role, and a developer is a system", () => {
  const call = { id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } };
  const messages = [
    { role: "system", content: "Be kind." },
    { role: "developer", content: [textPart], name: "dev" },
    { role: "user", content: [textPart, picture], name: "Ann" },
    { role: "assistant", content: "Hm", reasoning_content: "why" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", content: "12 °C", tool_call_id: "call_1" },
  ];
  const { body, imageParam } = readChat({ messages });
  expect(body.messages).toEqual([messages[0], { ...messages[1], role: "system" }, ...messages.slice(2)]);
  expect(imageParam).toBe("messages[2].content[1]");
});

test("a tool's result may have images, which count as the request's own", () => {
  const call = { id: "c", type: "function", function: { name: "look", arguments: "{}" } };
  const messages = [
    { role: "assistant", tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: [textPart, picture] },
  ];
  expect(readChat({ messages })).toMatchObject({ body: { messages }, imageParam: "messages[1].content[1]" });
});

test.each([
  ["max_completion_tokens", { max_completion_tokens: 7 }, { max_tokens: 7 }],
  ["max_tokens beside it, the same", { max_tokens: 7, max_completion_tokens: 7 }, { max_tokens: 7 }],
  ["max_tokens beside a null", { max_tokens: 7, max_completion_tokens: null }, { max_tokens: 7 }],
  ["a single stop", { stop: "END" }, { stop: ["END"] }],
  ["several stops", { stop: ["a", "b"] }, { stop: ["a", "b"] }],
  ["no tools but a choice of none", { tool_choice: "none" }, {}],
  ["lists that are empty", { tools: [], functions: [], stop: [] }, {}],
  ["a limit of -1 tokens", { max_tokens: -1, max_completion_tokens: -1 }, {}],
  ["an empty stop", { stop: "" }, {}],
  ["empty stops beside another", { stop: ["", "END"] }, { stop: ["END"] }],
  ["the default effort", { reasoning_effort: "default" }, {}],
  ["a choice as the model likes among no tools", { tools: [], tool_choice: "auto" }, {}],
  [
    "an object with a schema",
    { response_format: { type: "json_object", schema: { type: "object" } } },
    { response_format: { type: "json_schema", json_schema: { name: "answer", schema: { type: "object" } } } },
  ],
  ["a dozen stops", { stop: "abcdefghijkl".split("") }, { stop: "abcdefghijkl".split("") }],
  ["the only kind of answer there is", { modalities: ["text"], verbosity: "medium" }, {}],
])("a chat request says in one way what may be said in two: %s", (_, fields, told) => {
  expect(readChat(fields).body).toEqual({ messages: [hello], ...told });
});

const refused = { type: "refusal", refusal: "No." };
const thought = { content: "Hm", reasoning_content: "why" };
const thoughts = ["wh", [{ type: "text", text: "y" }]].map((thinking) => ({ type: "thinking", thinking }));
test.each([
  ["a refusal", { content: null, refusal: "I will not." }, { content: "I will not." }],
  ["a refusal beside empty text", { content: "", refusal: "I will not." }, { content: "I will not." }],
  ["a refusal beside text", { content: "No.", refusal: "I will not." }, { content: "No." }],
  ["a refusal as a part", { content: [refused] }, { content: [{ ...textPart, text: "No." }] }],
  ["thoughts", { content: "Hm", reasoning: "why" }, thought],
  ["thoughts as parts", { content: [...thoughts, textPart] }, { content: [textPart], reasoning_content: "why" }],
  ["nothing but a thought", { content: thoughts }, { reasoning_content: "why" }],
  ["thoughts under both their names", { ...thought, reasoning: "why" }, thought],
])("a chat request hands on what the assistant said before: %s", (_, said, told) => {
  const { body, ignored } = readChat({ messages: [hello, { role: "assistant", ...said }] });
  expect(body.messages).toEqual([hello, { role: "assistant", ...told }]);
  expect(ignored).toEqual([]);
});

test.each([
  ["original", "high"],
  ["low", "low"],
  [null, undefined],
])("a chat request with an image in the detail %s is one in the detail %s", (asked, told) => {
  const seen = (detail: unknown) => ({ ...picture, image_url: { ...picture.image_url, detail } });
  const { body } = readChat({ messages: [{ role: "user", content: [textPart, seen(asked)] }] });
  expect(body.messages).toEqual([{ role: "user", content: [textPart, told === undefined ? picture : seen(told)] }]);
});

test("a chat request with the URL of an image as a text is one with an image", () => {
  const content = [{ type: "image_url", image_url: picture.image_url.url }];
  expect(readChat({ messages: [{ role: "user", content }] })).toMatchObject({
    body: { messages: [{ role: "user", content: [picture] }] },
    imageParam: "messages[0].content[0]",
  });
});

test("a chat request with some of its tools allowed is one with only those", () => {
  const other = { ...weather, function: { name: "other" } };
  const allowed_tools = { mode: "required", tools: [{ type: "function", function: { name: "other" } }] };
  const { body } = readChat({ tools: [weather, other], tool_choice: { type: "allowed_tools", allowed_tools } });
  expect(body).toEqual({ messages: [hello], tools: [other], tool_choice: "required" });
});

test("a chat request takes an empty list for what says nothing, of a tool and of who called it", () => {
  const call = { id: "c", type: "function", function: { name: "weather", arguments: "{}" } };
  const { body } = readChat({
    messages: [
      { role: "assistant", content: [], tool_calls: [call] },
      { role: "tool", content: [], tool_call_id: "c" },
    ],
  });
  expect(body.messages).toEqual([
    { role: "assistant", tool_calls: [call] },
    { role: "tool", content: "", tool_call_id: "c" },
  ]);
});

test("a chat request that is taken is one that every agent of this build takes; any other is a fault, and nothing else is thrown", () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.constantFrom<unknown>(null, 0, 1, -1, 0.5, 1e300, "", "auto", "none", "low", true, [], {}, "END", ["a"]),
    fc.constantFrom<unknown>([weather], { type: "json_object" }, { include_usage: true }, { extra: 1 }),
  );
  const part = fc.constantFrom<unknown>(textPart, picture, { ...textPart, extra: 1 }, { type: "audio" }, "x", null);
  const message = fc.record(
    {
      role: fc.constantFrom<unknown>("system", "developer", "user", "assistant", "tool", "robot", null),
      content: fc.oneof(fc.string(), fc.constant(null), fc.array(part, { maxLength: 3 })),
      extra: value,
    },
    { requiredKeys: [] },
  );
  const names = "stream stream_options tools tool_choice max_tokens temperature stop n user __proto__".split(" ");
  const fields = fc.dictionary(fc.constantFrom(...names), value);
  const messages = fc.oneof(fc.constant([hello]), fc.array(message, { maxLength: 3 }), value);
  fc.assert(
    fc.property(fields, messages, (given, said) => {
      const request: unknown = JSON.parse(JSON.stringify({ model: "llama3", messages: said, ...given }));
      try {
        const { body } = readChatRequest({ ...Object(request) });
        expect(chatBody.safeParse(JSON.parse(JSON.stringify(body))).error).toBeUndefined();
      } catch (thrown) {
        if (!(thrown instanceof Fault)) throw thrown;
        expect(thrown.code).not.toBe("internal_error");
        expect(thrown.param).not.toBeUndefined();
      }
    }),
    { numRuns: 2_000 },
  );
});
