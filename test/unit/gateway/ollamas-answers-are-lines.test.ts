import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { AnswerTimings } from "../../../services/gateway/jobs/answer-parts.ts";
import type { OllamaTerms } from "../../../services/gateway/apis/ollama/ollama-request.ts";
import { rendererOf } from "../../harness/read-requests.ts";
import { renderOllama } from "../../../services/gateway/apis/ollama/render-ollama.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";
import { regular, runtimeEvents } from "../answer/answers.ts";

type Told = Readonly<Record<string, unknown>> & { readonly message?: Message };
interface Message {
  readonly content?: string;
  readonly thinking?: string;
  readonly tool_calls?: readonly unknown[];
}

const terms: OllamaTerms = { shape: "chat", model: "llama3:latest", loads: false };
const head = { id: "a", createdSeconds: 7, model: "llama3" };
const timings: AnswerTimings = { queuedMs: 10, firstTokenMs: 30, totalMs: 100, loadMs: 5 };
const usage: AnswerEvent = { kind: "usage", promptTokens: 7, completionTokens: 5 };
const stop: AnswerEvent[] = [{ kind: "finish", reason: "stop" }, usage];
const calls = (index: number): AnswerEvent => ({ kind: "tool-call-start", index, id: `c${index}`, name: "weather" });
const given = (index: number, text: string): AnswerEvent => ({ kind: "tool-call-delta", index, arguments: text });

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
    { id: "c0", function: { index: 0, name: "weather", arguments: { city: "Oslo" } } },
    { id: "c1", function: { index: 1, name: "weather", arguments: {} } },
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
