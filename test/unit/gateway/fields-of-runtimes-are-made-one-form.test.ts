import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { readCompletionRequest } from "../../../services/gateway/apis/completions/completion-request.ts";
import { faultWithSentNames } from "../../../services/gateway/chats/runtime-fields.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";
import { faultOf, hello, readChat } from "./chat-requests.ts";

const schema = { type: "object", properties: { a: { type: "integer" } } };
const format = { type: "json_schema", json_schema: { name: "answer", schema } };

const lengths = { ignore_eos: true, min_tokens: 20 };
const sampling = { top_k: 40, min_p: 0.05, typical_p: 0.9, repeat_penalty: 1.1, stop_token_ids: [2, 7], ...lengths };
const completion = (fields: object) => readCompletionRequest({ model: "llama3", prompt: "Once", ...fields });

test("fields of sampling that runtimes know and OpenAI does not go to machines with chats and with completions", () => {
  expect(readChat(sampling)).toMatchObject({ body: { messages: [hello], ...sampling }, ignored: [] });
  expect(completion(sampling)).toMatchObject({ body: { prompts: ["Once"], ...sampling }, ignored: [] });
});

test.each<[string, object, object]>([
  ["all tokens as top_k", { top_k: -1 }, { top_k: 0 }],
  ["no stop tokens", { stop_token_ids: [] }, {}],
  ["vLLM's name of a penalty", { repetition_penalty: 1.2 }, { repeat_penalty: 1.2 }],
  ["Ollama's word for no thinking", { think: false }, { reasoning_effort: "none" }],
  ["Ollama's word for some thinking", { think: "low" }, { reasoning_effort: "low" }],
  ["thinking itself", { think: true }, { chat_template_kwargs: { enable_thinking: true, thinking: true } }],
  ["no thinking for the template", { chat_template_kwargs: { enable_thinking: false } }, { reasoning_effort: "none" }],
  [
    "the same effort in two words",
    { chat_template_kwargs: { thinking: false }, reasoning_effort: "none" },
    { reasoning_effort: "none" },
  ],
  [
    "more for the template",
    { chat_template_kwargs: { enable_thinking: false, lang: "de" } },
    { chat_template_kwargs: { enable_thinking: false, lang: "de" } },
  ],
  ["nothing for the template", { chat_template_kwargs: {} }, {}],
  ["a grammar", { grammar: 'root ::= "a"' }, { grammar: 'root ::= "a"' }],
  ["a grammar in vLLM's older name", { guided_grammar: 'root ::= "a"' }, { grammar: 'root ::= "a"' }],
  ["a grammar in vLLM's name", { structured_outputs: { grammar: 'root ::= "a"' } }, { grammar: 'root ::= "a"' }],
  ["a choice", { structured_outputs: { choice: ["a", "b"] } }, { structured_outputs: { choice: ["a", "b"] } }],
  ["a choice in the older name", { guided_choice: ["a", "b"] }, { structured_outputs: { choice: ["a", "b"] } }],
  ["a schema", { structured_outputs: { json: schema } }, { response_format: format }],
  ["a schema in the older name", { guided_json: schema }, { response_format: format }],
  ["a schema as a text", { guided_json: JSON.stringify(schema) }, { response_format: format }],
  [
    "a schema beside plain text",
    { guided_json: schema, response_format: { type: "text" } },
    { response_format: format },
  ],
])("fields that runtimes know and OpenAI does not are made one form: %s", (_, fields, told) => {
  const { body, ignored } = readChat({ ...fields });
  expect(body).toEqual({ messages: [hello], ...told });
  expect(chatBody.parse(body)).toEqual(body);
  expect(ignored).toEqual([]);
});

test.each<[string, string, Record<string, unknown>]>([
  ["integer_below_min_value", "top_k", { top_k: -2 }],
  ["decimal_above_max_value", "min_p", { min_p: 1.5 }],
  ["array_above_max_length", "stop_token_ids", { stop_token_ids: Array(17).fill(1) }],
  ["invalid_value", "repeat_penalty", { repeat_penalty: 1.1, repetition_penalty: 1.2 }],
  ["invalid_value", "think", { think: false, reasoning_effort: "low" }],
  ["invalid_value", "chat_template_kwargs", { chat_template_kwargs: { thinking: false }, reasoning_effort: "low" }],
  ["invalid_value", "grammar", { grammar: "root ::= [a]", guided_json: schema }],
  ["invalid_value", "guided_regex", { guided_regex: "a", response_format: { type: "json_object" } }],
  ["invalid_value", "guided_json", { guided_json: "no JSON" }],
  ["invalid_value", "guided_json", { guided_json: '{"__proto__":{}}' }],
  ["string_too_long", "guided_json", { guided_json: { a: "x".repeat(300_000) } }],
  [
    "unsupported_parameter",
    "chat_template_kwargs.chat_template",
    { chat_template_kwargs: { chat_template: "{{ 1 }}" } },
  ],
  ["unsupported_parameter", "chat_template_kwargs.tools", { chat_template_kwargs: { tools: "x" } }],
])("fields that runtimes know and OpenAI does not are refused with %s at %s: %o", (code, param, fields) => {
  expect(faultOf(fields)).toEqual({ code, param });
});

test("the template's arguments are plain values and have limits", () => {
  for (const value of [{}, [], null, "x".repeat(1_025)]) {
    expect(faultOf({ chat_template_kwargs: { lang: value } }).param).toBe("chat_template_kwargs.lang");
  }
  expect(faultOf({ chat_template_kwargs: { "a b": 1 } }).param).toContain("chat_template_kwargs");
});

test.each(["grammar", "guided_json", "structured_outputs"])(
  "fields that runtimes know and OpenAI does not belong to chats and not to completions: %s",
  (field) => {
    expect(faultThrownBy(() => completion({ [field]: "x" }))).toMatchObject({
      code: "unsupported_parameter",
      param: field,
    });
  },
);

test("a legacy completion takes a runtime's -1 as no limit, in the place of OpenAI's sixteen tokens", () => {
  expect(completion({ max_tokens: -1 }).body).toEqual({ prompts: ["Once"] });
});

test.each<[object, string, string]>([
  [{ guided_json: schema }, "response_format", "guided_json"],
  [{ repetition_penalty: 1.1 }, "repeat_penalty", "repetition_penalty"],
  [{ think: false }, "reasoning_effort", "think"],
  [{ guided_choice: ["a"] }, "structured_outputs", "guided_choice"],
  [{ chat_template_kwargs: { thinking: false } }, "reasoning_effort", "chat_template_kwargs"],
  [{ top_k: 3 }, "top_k", "top_k"],
])(
  "fields that runtimes know and OpenAI does not are named in a machine's refusal as they were sent: %o",
  (fields, param, own) => {
    const fault = new Fault("unsupported_parameter", { message: `No '${param}' here.`, param, internal: "why" });
    const told = faultWithSentNames(fault, readChat({ ...fields }).form.sentNames);
    expect(told).toMatchObject({ param: own, message: `No '${own}' here.`, internal: "why" });
  },
);
