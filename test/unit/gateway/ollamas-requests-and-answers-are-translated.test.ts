import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { AnswerTimings } from "../../../services/gateway/jobs/answer-parts.ts";
import type { OllamaTerms } from "../../../services/gateway/apis/ollama/ollama-request.ts";
import { readRequest, rendererOf } from "../../harness/read-requests.ts";
import { renderOllama } from "../../../services/gateway/apis/ollama/render-ollama.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";
import { regular, runtimeEvents } from "../answer/answers.ts";
import { calls, given, stop } from "../answer/events.ts";
import { completeBody } from "#shared/protocol/job-bodies.ts";
import type { ReadRequest } from "../../../services/gateway/requests/read-request.ts";
import { withoutLatest } from "../../../services/gateway/requests/resolve-model.ts";
import { key, tableOf } from "./routes-and-keys.ts";

type Told = Readonly<Record<string, unknown>> & { readonly message?: Message };
interface Message {
  readonly content?: string;
  readonly thinking?: string;
  readonly tool_calls?: readonly unknown[];
}

const terms: OllamaTerms = { shape: "chat", model: "llama3:latest", loads: false };
const head = { id: "a", createdSeconds: 7, model: "llama3" };
const timings: AnswerTimings = { queuedMs: 10, firstTokenMs: 30, totalMs: 100, loadMs: 5 };

function rendered(events: readonly AnswerEvent[], streamed: boolean, own = terms): Told[] {
  const renderer = rendererOf(renderOllama(own, { streamed }), head);
  const bytes = Buffer.concat([...events.map((event) => renderer.push([event])), renderer.end(timings)]);
  const lines = bytes.toString().split("\n");
  expect(lines.pop()).toBe("");
  return lines.map((line) => JSON.parse(line) as Told);
}

test("calls whose arguments come interleaved, and over several lines, are whole in one line", () => {
  const events = [calls(0), calls(1), given(0, '{"city":\n'), given(1, "{}"), given(0, '"Oslo"}'), ...stop];
  const made = [
    { id: "call_0", function: { index: 0, name: "weather", arguments: { city: "Oslo" } } },
    { id: "call_1", function: { index: 1, name: "weather", arguments: {} } },
  ];
  const message = { role: "assistant", content: "", tool_calls: made };
  expect(rendered(events, true)).toMatchObject([
    { message, done: false },
    { done: true, done_reason: "stop" },
  ]);
  expect(rendered(events, false)).toMatchObject([{ message, done: true, done_reason: "stop" }]);
});

test("arguments that are no object end the answer in a fault, since no client can read them", () => {
  expect(faultThrownBy(() => rendered([calls(0), given(0, "Oslo"), ...stop], true)).code).toBe("upstream_error");
});

test("the lines of a stream hold the same as the whole answer", () => {
  fc.assert(
    fc.property(runtimeEvents, (events) => {
      const all = regular(events)
        .filter((event) => !("choice" in event) || (event.choice ?? 0) === 0)
        .map((event) => (event.kind === "tool-call-delta" ? { ...event, arguments: "" } : event));
      const lines = rendered(all, true);
      const [whole] = rendered(all, false);
      const joined = (field: "content" | "thinking") => lines.map(({ message }) => message?.[field] ?? "").join("");
      expect(joined("content")).toBe(whole?.message?.content);
      expect(joined("thinking")).toBe(whole?.message?.thinking ?? "");
      expect(lines.flatMap(({ message }) => message?.tool_calls ?? [])).toEqual(whole?.message?.tool_calls ?? []);
    }),
  );
});

test("a wait is told in a piece without text, and a failure in a line of its own", () => {
  const { ends } = renderOllama(terms, { streamed: true });
  const line = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString());
  const waiting = { message: { role: "assistant", content: "" }, x_trunkline: "queued at 2", done: false };
  expect(line(ends.waiting("queued at 2"))).toMatchObject(waiting);
  const failed = line(ends.failed(new Fault("agent_disconnected", { message: "Gone." })));
  expect(failed).toEqual({ error: "Gone.", code: "agent_disconnected", param: null });
});

test.each([
  ["chat", "max_tokens", "options.num_predict"],
  ["chat", "repeat_penalty", "options.repeat_penalty"],
  ["chat", "response_format.json_schema", "format"],
  ["chat", "reasoning_effort", "think"],
  ["chat", "messages[2].content[1].image_url.url", "messages[2].images"],
  ["generate", "messages[0].content[1]", "images"],
  ["generate", "prompts", "prompt"],
] as const)("a fault of a %s that a machine finds in %s names %s", (shape, param, own) => {
  const { adaptFault } = renderOllama({ ...terms, shape }, { streamed: true });
  const fault = adaptFault(new Fault("unsupported_value", { message: `'${param}' is wrong.`, param }));
  expect([fault.param, fault.message]).toEqual([own, `'${own}' is wrong.`]);
});

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
