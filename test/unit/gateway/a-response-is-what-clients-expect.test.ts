import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import {
  faultForResponses,
  renderResponse,
  ResponseRenderer,
  withoutStore,
} from "../../../services/gateway/apis/responses/render-response.ts";
import { readResponseRequest } from "../../../services/gateway/apis/responses/response-request.ts";
import { responseCharactersMax } from "../../../services/gateway/apis/responses/response-output.ts";
import { rendererOf } from "../../harness/read-requests.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";
import { regular, runtimeEvents } from "../answer/answers.ts";
import { calls, given, namedEventsIn, says, stop, thinks, type Told, usage } from "../answer/events.ts";
import { readResponse } from "./response-requests.ts";

const head = { id: "resp_1", createdSeconds: 7, model: "llama3" };
const { terms } = readResponse({ instructions: "Be kind.", metadata: { team: "blue" }, temperature: 0.5 }).form;

function streamed(events: readonly AnswerEvent[], asked = terms): Told[] {
  const stream = new ResponseRenderer(head, asked, { streamed: true });
  const pieces = [...events.map((event) => stream.push([event])), stream.end()];
  return pieces.flatMap(namedEventsIn);
}

function whole(events: readonly AnswerEvent[], asked = terms): Told {
  const response = new ResponseRenderer(head, asked, { streamed: false });
  for (const event of events) expect(response.push([event])).toHaveLength(0);
  return JSON.parse(Buffer.from(response.end()).toString()) as Told;
}

/** All that an item says. */
function textIn(item: Told): unknown {
  if (item["type"] === "function_call") return item["arguments"];
  return (item["content"] as { text: string }[])[0]?.text;
}

const outputOf = (events: readonly AnswerEvent[]): Told[] => whole(events)["output"] as Told[];
const idsMasked = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/"(msg|rs|fc)_\w+"/g, '"$1_…"'));

test("a response is its answer and what it was asked, with the usage in the words of its API", () => {
  expect(whole([says("Hello "), says("there."), ...stop])).toMatchObject({
    id: "resp_1",
    object: "response",
    created_at: 7,
    model: "llama3",
    status: "completed",
    incomplete_details: null,
    error: null,
    instructions: "Be kind.",
    metadata: { team: "blue" },
    temperature: 0.5,
    top_p: null,
    store: false,
    output: [
      {
        type: "message",
        role: "assistant",
        status: "completed",
        content: [{ text: "Hello there.", annotations: [] }],
      },
    ],
    usage: {
      input_tokens: 7,
      input_tokens_details: { cached_tokens: 3, cache_write_tokens: 0 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 12,
    },
  });
});

test("a response has the sampling that was sent, else the one that the runtime reports, else null", () => {
  const sampled = (sampling: object | undefined, asked: Told) => {
    const own = { ...head, sampling };
    const response = new ResponseRenderer(own, readResponse(asked).form.terms, { streamed: false });
    response.push([says("Hi."), ...stop]);
    const { temperature, top_p } = JSON.parse(Buffer.from(response.end()).toString()) as Told;
    return { temperature, top_p };
  };
  expect(sampled({ temperature: 0.8, top_p: 0.95 }, { temperature: 0 })).toEqual({ temperature: 0, top_p: 0.95 });
  expect(sampled({ temperature: 0.6 }, {})).toEqual({ temperature: 0.6, top_p: null });
  expect(sampled(undefined, { top_p: 0.5 })).toEqual({ temperature: null, top_p: 0.5 });
});

test("a response tells when it was complete, by the time that it took on its machine", () => {
  const timings = { queuedMs: 0, firstTokenMs: 10, totalMs: 4_600, loadMs: 0 };
  const ended = (reason: "stop" | "length") => {
    const response = new ResponseRenderer(head, terms, { streamed: false });
    response.push([says("Hi."), { kind: "finish", reason }, usage]);
    return (JSON.parse(Buffer.from(response.end(timings)).toString()) as Told)["completed_at"];
  };
  expect([ended("stop"), ended("length")]).toEqual([12, null]);
});

test("a response tells thoughts, texts and calls in the order in which they began, each as an item", () => {
  const events = [thinks("Hm. "), thinks("Well."), says("Hi."), calls(0), given(0, "{}"), thinks("So."), says("Bye.")];
  expect(outputOf([...events, ...stop])).toMatchObject([
    { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm. Well." }] },
    { type: "message", content: [{ text: "Hi." }] },
    { type: "function_call", call_id: "call_0", name: "weather", arguments: "{}", status: "completed" },
    { type: "reasoning", content: [{ text: "So." }] },
    { type: "message", content: [{ text: "Bye." }] },
  ]);
});

test("a response calls a function of a namespace as its client named it", () => {
  const tools = [{ type: "namespace", name: "home", tools: [{ type: "function", name: "open" }] }];
  const events: AnswerEvent[] = [{ kind: "tool-call-start", index: 0, id: "call_0", name: "home__open" }, ...stop];
  const { output } = whole(events, readResponse({ tools }).form.terms) as { output: unknown[] };
  expect(output).toMatchObject([{ namespace: "home", name: "open" }]);
  expect(outputOf(events)[0]).toMatchObject({ name: "home__open" });
  expect(outputOf(events)[0]).not.toHaveProperty("namespace");
});

test("a response tells thoughts as a summary to whoever asks for one, and nothing of them twice", () => {
  const asked = readResponse({ reasoning: { summary: "auto" } }).form.terms;
  const events = [thinks("Hm. "), thinks("Well."), says("Hi."), ...stop];
  const item = { type: "reasoning", summary: [{ type: "summary_text", text: "Hm. Well." }], status: "completed" };
  const { output, reasoning } = whole(events, asked) as { output: unknown[]; reasoning: unknown };
  expect(idsMasked(output[0])).toEqual({ id: "rs_…", ...item });
  expect(reasoning).toEqual({ effort: null, summary: "auto" });
  const told = streamed(events, asked).filter((event) => "summary_index" in event);
  expect(told.map(({ type, delta = "", text = "" }) => [type, delta, text])).toEqual([
    ["response.reasoning_summary_part.added", "", ""],
    ["response.reasoning_summary_text.delta", "Hm. ", ""],
    ["response.reasoning_summary_text.delta", "Well.", ""],
    ["response.reasoning_summary_text.done", "", "Hm. Well."],
    ["response.reasoning_summary_part.done", "", ""],
  ]);
});

test.each([
  ["length", "max_output_tokens"],
  ["content_filter", "content_filter"],
] as const)("a response that ended for %s is incomplete, and so is its last item", (reason, why) => {
  const answer = whole([thinks("Hm."), says("Hel"), { kind: "finish", reason }, usage]);
  expect(answer).toMatchObject({ status: "incomplete", incomplete_details: { reason: why } });
  expect(answer["output"]).toMatchObject([{ status: "completed" }, { status: "incomplete" }]);
});

test("a response to an empty answer is complete and empty", () => {
  expect(whole(stop)).toMatchObject({ status: "completed", output: [] });
  expect(streamed(stop).map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "response.completed",
  ]);
});

const answer = [thinks("Hm."), says("Hello "), says("there."), calls(0), given(0, '{"a":'), given(0, "1}"), ...stop];

test("a response's stream numbers its events without a gap", () => {
  const numbers = streamed(answer).map(({ sequence_number }) => sequence_number);
  expect(numbers).toEqual(numbers.map((_, place) => place));
});

test("a response's stream that breaks off says so as clients of either kind read it, with the next number", () => {
  const stream = new ResponseRenderer(head, terms, { streamed: true });
  const before = namedEventsIn(stream.push([says("Hel")])).length;
  const error = { message: "The runtime failed.", type: "server_error", param: null, code: "upstream_error" };
  const { type: _, ...flat } = error;
  expect(namedEventsIn(stream.failed(new Fault("upstream_error", { message: error.message })))).toEqual([
    { type: "error", sequence_number: before, error, ...flat },
  ]);
});

test("a response's stream says what the whole answer says, for anything a runtime says", () => {
  fc.assert(
    fc.property(runtimeEvents, (events) => {
      const all = regular(events);
      const told = streamed(all);
      const { response } = told.at(-1) as { response: { output: Told[] } };
      expect(idsMasked(response)).toEqual(idsMasked(whole(all)));
      const items = response.output.map((_, place) =>
        told.filter((each) => each["output_index"] === place && "delta" in each).map(({ delta }) => delta),
      );
      expect(items.map((deltas) => deltas.join(""))).toEqual(response.output.map(textIn));
    }),
    { numRuns: 300 },
  );
});

test("a response's stream begins anew where a request goes to another machine", () => {
  const rendering = renderResponse(terms, { streamed: true });
  const { ends } = rendering;
  rendererOf(rendering, head).push([says("Hel")]);
  const again = namedEventsIn(rendererOf(rendering, { ...head, model: "llama3:8b" }).push([says("Hello")]));
  expect(again[0]).toMatchObject({ sequence_number: 0, response: { model: "llama3:8b" } });
  const [error] = namedEventsIn(ends.failed(new Fault("upstream_error", { message: "The runtime failed." })));
  expect(error).toMatchObject({ type: "error", sequence_number: again.length });
  expect(ends.whole).toHaveLength(0);
});

test.each([
  ["a response", () => new ResponseRenderer(head, terms, { streamed: false })],
  ["a response's stream", () => new ResponseRenderer(head, terms, { streamed: true })],
])("%s has a longest length and says which, since all of it is told once more at its end", (_, begin) => {
  const long = "a".repeat(responseCharactersMax);
  const call = (called: { id: string; name: string }): AnswerEvent[] => [
    { kind: "tool-call-start", index: 0, ...called },
  ];
  const many = (event: (place: number) => AnswerEvent) => Array.from({ length: 5_000 }, (_each, place) => event(place));
  const tooLong = [
    [says(long.slice(1_024)), says(long.slice(-1_024))],
    call({ id: "call_1", name: long }),
    call({ id: long, name: "weather" }),
    many((place) => (place % 2 === 0 ? says("a") : thinks("b"))),
    many(calls),
  ];
  begin().push([says(long.slice(1_024))]);
  for (const events of tooLong) {
    const { code, message } = faultThrownBy(() => begin().push(events));
    expect([code, message]).toEqual(["invalid_value", expect.stringContaining("(responseCharactersMax)")]);
  }
});

test("a response that was to be stored and is not says so in all of its last bytes, and changes nothing else", () => {
  const tools = [{ type: "function", name: "f", parameters: { type: "object", default: { store: true } } }];
  const asked = { model: "llama3", input: "Hello", metadata: { note: '\u2028"store":true' }, tools };
  const { terms: storing } = readResponseRequest(asked, new Map()).form;
  const stream = new ResponseRenderer(head, storing, { streamed: true });
  const last = Buffer.concat([stream.push([says('"store":true'), ...stop]), stream.end()]);
  const [told, untold] = [namedEventsIn(last), namedEventsIn(withoutStore(last))];
  const all = told.flatMap(({ response }) => (response === undefined ? [] : [response]));
  expect(all).toMatchObject([{ store: true }, { store: true }, { store: true, status: "completed" }]);
  expect(untold).toEqual(
    told.map((event) =>
      event["response"] === undefined ? event : { ...event, response: { ...event["response"], store: false } },
    ),
  );
});

test.each([
  ["response_format", "text.format"],
  ["response_format.json_schema.schema", "text.format.schema"],
  ["reasoning_effort", "reasoning.effort"],
  ["max_tokens", "max_output_tokens"],
  ["logprobs", "include"],
  ["messages", "input"],
  ["messages[3].content[1]", "input"],
  ["tools[2].function.parameters", "tools"],
  ["tool_choice", "tool_choice"],
  ["top_logprobs", "top_logprobs"],
  ["model", "model"],
])("what machines call %s is told as %s", (param, own) => {
  const message = `The runtime cannot honour '${param}'.`;
  const told = faultForResponses(new Fault("unsupported_parameter", { message, param, internal: "why" }));
  expect(told).toMatchObject({ param: own, message: `The runtime cannot honour '${own}'.`, internal: "why" });
});

test("a fault of nothing in the request is told as it is", () => {
  const fault = new Fault("server_is_overloaded", { message: "The queue is full.", retryAfterSeconds: 3 });
  expect(faultForResponses(fault)).toBe(fault);
});
