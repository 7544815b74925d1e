import { expect, test } from "vitest";
import { completeBody } from "#shared/protocol/job-bodies.ts";
import { type ReadRequest } from "../../../services/gateway/requests/read-request.ts";
import { readRequest } from "../../harness/read-requests.ts";
import { withoutLatest } from "../../../services/gateway/requests/resolve-model.ts";
import { key, tableOf } from "./routes-and-keys.ts";

const read = (outer: string, fields: object): ReadRequest =>
  readRequest(outer, Buffer.from(JSON.stringify({ model: "llama3", ...fields })));
const bodyOf = ({ body }: ReadRequest): unknown => JSON.parse(Buffer.from(body).toString());
const hello = { role: "user", content: "Hello" };

test("fields that Ollama's Go client sends without a value ask for nothing", () => {
  const unset = { suffix: "", system: "", template: "", format: "", options: null, context: null, raw: false };
  const request = read("ollama-generate", { ...unset, prompt: "Hello", images: null, truncate: false });
  expect(bodyOf(request)).toEqual({ messages: [hello] });
  expect(request.ignored).toEqual([]);
});

test("a conversation that goes on gives its calls the same ids again", () => {
  const called = { role: "assistant", content: "", tool_calls: [{ function: { name: "f", arguments: { a: 1 } } }] };
  const first = [hello, called, { role: "tool", content: "7" }];
  const second = [...first, { role: "assistant", content: "Seven." }, hello, called, { role: "tool", content: "8" }];
  const bodies = [first, second].map(
    (messages) => bodyOf(read("ollama-chat", { messages })) as { messages: unknown[] },
  );
  expect(bodies[1]?.messages.slice(0, 3)).toEqual(bodies[0]?.messages);
  expect(bodies[1]?.messages.slice(-2)).toMatchObject([
    { tool_calls: [{ id: "call_5_0", function: { arguments: '{"a":1}' } }] },
    { tool_call_id: "call_5_0", content: "8" },
  ]);
});

test("a text without a template is as long as the model makes it, unless the client bounds it", () => {
  const request = read("ollama-generate", { prompt: "Once", raw: true, options: { num_predict: -1 } });
  expect(bodyOf(request)).toEqual({ prompts: ["Once"] });
  expect(completeBody.safeParse(bodyOf(request)).success).toBe(true);
});

test("thinking that is switched off is a wish, and an effort is a demand", () => {
  expect(read("ollama-chat", { messages: [hello], think: false }).effort).toEqual({ field: "think", value: "none" });
  expect(read("ollama-chat", { messages: [hello], think: "low" }).effort).toBeUndefined();
});

test.each<[string, object]>([
  ["ollama-chat", {}],
  ["ollama-chat", { messages: [] }],
  ["ollama-generate", { prompt: "", system: "Be kind." }],
  ["ollama-embed", { input: [] }],
  ["ollama-embed", { input: "" }],
  ["ollama-embeddings", {}],
])("a request of Ollama's API %s with %j asks for no answer", (outer, fields) => {
  expect(read(outer, fields).form).toMatchObject({ terms: { loads: true } });
});

const routes = tableOf({ "gpt-4": ["llama3"], "old:latest": ["llama3"] });
test.each([
  ["llama3:latest", ["*"], "llama3:latest"],
  ["llama3", ["*"], "llama3"],
  ["gpt-4:latest", ["*"], "gpt-4"],
  ["old:latest", ["*"], "old:latest"],
  ["my-llama:latest", ["*-llama"], "my-llama"],
  ["llama3:8b", ["qwen*"], "llama3:8b"],
])("a name with :latest %s means, for a key with the scopes %j, the name %s", (asked, scopes, name) => {
  expect(withoutLatest(asked, key({ scopes }), routes)).toBe(name);
});
