import { validateHeaderValue } from "node:http";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ignoredHeader } from "../../../services/gateway/requests/ignored-fields.ts";
import { hello, picture, readChat, weather } from "./chat-requests.ts";

const text = { type: "text", text: "Hi" };
const user = (...content: object[]) => ({ messages: [{ role: "user", content }] });
const call = { id: "c", type: "function", index: 0, function: { name: "f", arguments: "" } };
const result = { role: "tool", tool_call_id: "c", content: "" };
const chosen = { type: "function", function: { name: "weather" } };

test.each<[string, Record<string, unknown>]>([
  ["store", { store: true }],
  ["verbosity", { verbosity: "low" }],
  ["stream_options.include_obfuscation", { stream: true, stream_options: { include_obfuscation: false } }],
  ["messages[0].refusal", { messages: [{ ...hello, refusal: "no" }] }],
  ["messages[0].content[1].cache_control", user(text, { ...text, cache_control: {} })],
  ["messages[0].content[0].image_url.format", user({ ...picture, image_url: { ...picture.image_url, format: "png" } })],
  ["messages[0].content[0].extra", { messages: [{ role: "system", content: [{ ...text, extra: 1 }] }] }],
  ["messages[0].tool_calls[0].index", { messages: [{ role: "assistant", tool_calls: [call] }, result] }],
  ["tools[0].function.x", { tools: [{ ...weather, function: { ...weather.function, x: 1 } }] }],
  ["tool_choice.x", { tools: [weather], tool_choice: { ...chosen, x: 1 } }],
  ["tool_choice.function.x", { tools: [weather], tool_choice: { ...chosen, function: { name: "weather", x: 1 } } }],
  ["response_format.x", { response_format: { type: "json_object", x: 1 } }],
  ["response_format.json_schema.x", { response_format: { type: "json_schema", json_schema: { name: "n", x: 1 } } }],
])("a field that means nothing here is left out and named: %s", (name, fields) => {
  const read = readChat(fields);
  expect(read.ignored).toEqual([name]);
  expect(JSON.stringify(read.body)).not.toContain(`"${name.split(".").at(-1)}"`);
});

test("a field that means nothing here is named wherever it stands, and all the rest is as if it were not there", () => {
  const content = (extra: object) => [
    { ...text, ...extra },
    { ...picture, ...extra },
  ];
  const request = (extra: object) => ({
    ...extra,
    stop: ["x"],
    tools: [{ ...weather, ...extra }],
    tool_choice: "auto",
    messages: [
      { role: "user", content: content(extra), ...extra },
      { ...hello, ...extra },
    ],
  });
  const [read, plain] = [readChat(request({ extra: { deep: [1] } })), readChat(request({}))];
  expect(read.body).toEqual(plain.body);
  expect(read.ignored.toSorted()).toEqual([
    "extra",
    "messages[0].content[0].extra",
    "messages[0].content[1].extra",
    "messages[0].extra",
    "messages[1].extra",
    "tools[0].extra",
  ]);
});

test("a field that means nothing here is no field of a caller's own schema: those are handed on as they are", () => {
  const parameters = { type: "object", properties: { anything: { "x-y": [1] } }, extra: { a: null } };
  const { body, ignored } = readChat({ tools: [{ type: "function", function: { name: "f", parameters } }] });
  expect(body.tools?.[0]?.function.parameters).toEqual(parameters);
  expect(ignored).toEqual([]);
});

test("the header that names ignored fields is none when there are none, and holds the names as they are when those are plain", () => {
  expect(ignoredHeader([])).toBeUndefined();
  expect(ignoredHeader(["user", "messages[0].content[1].x"])).toBe("user,messages[0].content[1].x");
});

test("the header that names ignored fields can be sent, whatever a caller calls a field, and cannot be taken for two names", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary", minLength: 1 }), { minLength: 1, maxLength: 5 }), (names) => {
      const value = ignoredHeader(names) ?? "";
      validateHeaderValue("x-trunkline-ignored", value);
      expect(value).toMatch(/^[\x21-\x7e]+$/);
      expect(value.split(",")).toHaveLength(names.length);
    }),
  );
  expect(ignoredHeader(["a\r\nset-cookie: x=1", "é,b"])).toBe("a%0d%0aset-cookie%3a%20x%3d1,%c3%a9%2cb");
});

test("the header that names ignored fields stays short, and says how many it does not name", () => {
  const value = ignoredHeader(Array.from({ length: 1_000 }, (_, place) => `${"x".repeat(500)}${place}`));
  expect(value).toMatch(/^x{100},.*,\+990 more$/);
  expect(value?.length).toBeLessThan(1_100);
  expect(ignoredHeader(Array.from({ length: 30 }, () => "語".repeat(100)))?.length).toBeLessThan(1_100);
});
