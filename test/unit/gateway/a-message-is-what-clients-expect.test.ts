import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault, type FaultCode } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import { heldCharactersMax } from "../../../services/gateway/apis/messages/content-blocks.ts";
import {
  faultForMessages,
  messageFaultBody,
  messageStatus,
} from "../../../services/gateway/apis/messages/message-faults.ts";
import { MessageStream, renderMessage, WholeMessage } from "../../../services/gateway/apis/messages/render-message.ts";
import { ContextOverflow, tellOverflow } from "../../../services/agent/runtimes/runtime-faults.ts";
import { rendererOf } from "../../harness/read-requests.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";
import { regular, runtimeEvents } from "../answer/answers.ts";
import { calls, given, namedEventsIn, says, stop, thinks, type Told, usage } from "../answer/events.ts";

type Block = { type: string; text?: string; thinking?: string; signature?: string; input?: unknown };

const head = { id: "msg_1", createdSeconds: 7, model: "llama3" };

/** Fields of Anthropic's that mean nothing here. Clients read them without a look whether they are there. */
const untold = {
  ending: { container: null, stop_details: null },
  usage: { cache_creation: null, inference_geo: null, server_tool_use: null, service_tier: null },
};
const textBlock = { type: "text", citations: null };
const call = { type: "tool_use", id: "call_0", name: "weather", caller: { type: "direct" } };

function streamed(events: readonly AnswerEvent[]): Told[] {
  const stream = new MessageStream(head);
  const pieces = [...events.map((event) => stream.push([event])), stream.end()];
  return pieces.flatMap(namedEventsIn);
}

function whole(events: readonly AnswerEvent[]): Told {
  const message = new WholeMessage(head);
  for (const event of events) expect(message.push([event])).toHaveLength(0);
  return JSON.parse(Buffer.from(message.end()).toString()) as Told;
}

const contentOf = (events: readonly AnswerEvent[]): unknown => whole([...events, ...stop])["content"];

/** Puts the blocks of a stream together as Anthropic's clients do: one after the other, each with its own deltas. */
function contentIn(events: readonly Told[]): Block[] {
  const content: Block[] = [];
  let json = "";
  let isOpen = false;
  for (const event of events) {
    const { type, index } = event;
    if (type === "content_block_start") {
      expect([index, isOpen]).toEqual([content.length, false]);
      content.push({ ...(event["content_block"] as Block) });
      [json, isOpen] = ["", true];
    }
    const block = content.at(-1);
    if (type === "content_block_delta" && block) {
      expect([index, isOpen]).toEqual([content.length - 1, true]);
      const delta = event["delta"] as { text?: string; thinking?: string; signature?: string; partial_json?: string };
      if (delta.text !== undefined) block.text += delta.text;
      if (delta.thinking !== undefined) block.thinking += delta.thinking;
      if (delta.signature !== undefined) block.signature = delta.signature;
      json += delta.partial_json ?? "";
    }
    if (type === "content_block_stop") {
      expect([index, isOpen]).toEqual([content.length - 1, true]);
      isOpen = false;
      if (block?.type === "tool_use") block.input = json === "" ? {} : (JSON.parse(json) as unknown);
    }
  }
  return content;
}

test("a message has its blocks in the order in which they began, and the usage in the words of its API", () => {
  const events = [
    thinks("Hm. "),
    thinks("Well."),
    says("Hi."),
    calls(0),
    given(0, '{"a": 1.0}'),
    says("Bye."),
    ...stop,
  ];
  expect(whole(events)).toEqual({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "llama3",
    content: [
      { type: "thinking", thinking: "Hm. Well.", signature: "trunkline" },
      { ...textBlock, text: "Hi." },
      { ...call, input: { a: 1 } },
      { ...textBlock, text: "Bye." },
    ],
    ...untold.ending,
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: {
      ...untold.usage,
      input_tokens: 4,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 3,
      output_tokens: 5,
      output_tokens_details: { thinking_tokens: 2 },
    },
  });
});

test.each([
  ["length", "max_tokens"],
  ["tool_calls", "tool_use"],
  ["content_filter", "refusal"],
] as const)("a message that ended for %s says %s, whole and streamed", (reason, told) => {
  const events: AnswerEvent[] = [says("Hi."), { kind: "finish", reason }, usage];
  expect(whole(events)["stop_reason"]).toBe(told);
  expect(streamed(events).at(-2)).toMatchObject({ type: "message_delta", delta: { stop_reason: told } });
});

test("a message keeps the digits of a tool's input as the model wrote them", () => {
  const message = new WholeMessage(head);
  message.push([calls(0), given(0, '{"n":12345678901234567890,'), given(0, '"x":1.0}'), ...stop]);
  expect(Buffer.from(message.end()).toString()).toContain('"input":{"n":12345678901234567890,"x":1.0}');
});

test("a message has no input where a call has none, and fails where a call has other than an object", () => {
  expect(contentOf([calls(0)])).toMatchObject([{ input: {} }]);
  for (const text of ["[1]", '{"a":', "7"]) {
    expect(faultThrownBy(() => contentOf([calls(0), given(0, text)])).code).toBe("upstream_error");
  }
});

test("a message has a longest length, and says which", () => {
  const message = new WholeMessage(head);
  const fault = faultThrownBy(() => message.push([says("a".repeat(limits.wholeAnswerCharactersMax + 1))]));
  expect(fault.message).toContain("(wholeAnswerCharactersMax)");
});

test("a message's stream ends a call as soon as its arguments are whole, so that the next one is not kept waiting", () => {
  const stream = new MessageStream(head);
  stream.push([calls(0), given(0, '{"a":"}"}'), calls(1)]);
  const next = namedEventsIn(stream.push([given(1, '{"b":')]));
  expect(next).toMatchObject([{ type: "content_block_delta", index: 1 }]);
});

test("a message's stream does not keep more than a limit waiting behind a call without arguments", () => {
  const stream = new MessageStream(head);
  stream.push([calls(0)]);
  expect(stream.push([says("a".repeat(heldCharactersMax - 100))])).toHaveLength(0);
  expect(namedEventsIn(stream.push([says("a".repeat(100))])).map(({ type }) => type)).toContain("content_block_stop");
  expect(faultThrownBy(() => stream.push([given(0, "{}")])).code).toBe("upstream_error");
});

test("a message's stream says what the whole answer says, for anything a runtime says", () => {
  fc.assert(
    fc.property(runtimeEvents, (events) => {
      const all = regular(events).flatMap((event): AnswerEvent[] =>
        // Arguments are JSON here; what they are else is a fault of the whole answer, and told above.
        event.kind === "tool-call-delta" ? [] : [event],
      );
      const told = streamed(all);
      expect(contentIn(told)).toEqual(whole(all)["content"]);
      expect(told.at(-1)).toEqual({ type: "message_stop" });
      expect(told.at(-2)).toMatchObject({ usage: whole(all)["usage"] });
    }),
    { numRuns: 300 },
  );
});

test("a message's stream loses no byte of arguments, in whatever order they come", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(2), fc.jsonValue()), { maxLength: 8 }),
      fc.infiniteStream(fc.nat(9)),
      (asked, pick) => {
        const pieces = asked.map(([, value], index) => ({
          index,
          left: JSON.stringify({ value }).split(""),
          started: false,
        }));
        const events: AnswerEvent[] = [];
        while (pieces.some(({ left }) => left.length > 0)) {
          const open = pieces.filter(({ left }) => left.length > 0);
          const piece = open[pick.next().value % open.length];
          if (piece === undefined) break;
          if (!piece.started) events.push(calls(piece.index));
          piece.started = true;
          events.push(given(piece.index, piece.left.splice(0, 3).join("")));
        }
        const expected = events.flatMap((event) =>
          event.kind === "tool-call-start" ? [{ value: asked[event.index]?.[1] }] : [],
        );
        const inputs = contentIn(streamed([...events, ...stop])).map(({ input }) => input);
        expect(JSON.stringify(inputs)).toBe(JSON.stringify(expected));
      },
    ),
    { numRuns: 200 },
  );
});

test("a stream that breaks off says so in an event, and no end follows", () => {
  const rendering = renderMessage({ streamed: true, requestId: "req_1" });
  const { ends } = rendering;
  rendererOf(rendering, head).push([says("Hel")]);
  expect(ends.whole).toHaveLength(0);
  expect(namedEventsIn(ends.failed(new Fault("upstream_error", { message: "The runtime failed." })))).toEqual([
    {
      type: "error",
      error: { type: "api_error", message: "The runtime failed.", code: "upstream_error", param: null },
      request_id: "req_1",
    },
  ]);
});

test("a message's stream pings while its client waits", () => {
  const { ends } = renderMessage({ streamed: true, requestId: "req_1" });
  expect(Buffer.from(ends.waiting("queued at 3")).toString()).toBe(
    ': queued at 3\nevent: ping\ndata: {"type":"ping"}\n\n',
  );
});

test.each([
  ["messages[3].content", "messages"],
  ["stop", "stop_sequences"],
  ["reasoning_effort", "output_config.effort"],
  ["response_format.json_schema", "output_config.format"],
  ["parallel_tool_calls", "tool_choice.disable_parallel_tool_use"],
  ["tools[2].function.parameters", "tools"],
  ["top_p", "top_p"],
])("a fault of a machine about '%s' is told as '%s'", (param, own) => {
  const told = faultForMessages(new Fault("unsupported_parameter", { message: `No '${param}'.`, param }));
  expect(told).toMatchObject({ param: own, message: `No '${own}'.` });
});

test.each([
  [{ promptTokens: 5_000 }, undefined, /^prompt is too long: 5000 tokens > 4096 maximum\. /],
  [{}, undefined, /^prompt is too long: 4097 tokens > 4096 maximum\. .*about 4097 \(estimated\)/],
  [{ promptTokens: 4_000 }, 200, /^input length and `max_tokens` exceed context limit: 4000 \+ 200 > 4096, /],
])(
  "a fault of a machine of a prompt that is too long (%j) is told in words that clients know",
  (overflow, tokensMax, words) => {
    const error = new ContextOverflow({ ...overflow, windowTokens: 4_096 }, "why");
    const run = { body: { messages: [{ role: "user" as const, content: "x".repeat(40) }] }, contextWindow: 4_096 };
    const fault = tellOverflow(error, run, tokensMax);
    expect(faultForMessages(fault as Fault).message).toMatch(words);
  },
);

test.each<[FaultCode, number, string, string | null]>([
  ["invalid_value", 400, "invalid_request_error", "invalid_value"],
  ["invalid_json", 400, "invalid_request_error", null],
  ["key_expired", 401, "authentication_error", "key_expired"],
  ["model_not_found", 404, "not_found_error", "model_not_found"],
  ["method_not_allowed", 405, "invalid_request_error", "method_not_allowed"],
  ["request_too_large", 413, "request_too_large", "request_too_large"],
  ["rate_limit_tokens", 429, "rate_limit_error", "rate_limit_exceeded"],
  ["internal_error", 500, "api_error", "internal_error"],
  ["upstream_error", 502, "api_error", "upstream_error"],
  ["agent_offline", 503, "api_error", "agent_offline"],
  ["upstream_timeout", 504, "timeout_error", "upstream_timeout"],
  ["server_is_overloaded", 529, "overloaded_error", "server_is_overloaded"],
])("the fault %s has the status %d and the type %s", (code, status, type, wire) => {
  const fault = new Fault(code, { message: "Why.", param: "a" });
  expect(messageStatus(fault)).toBe(status);
  expect(messageFaultBody(fault, "req_1")).toEqual({
    type: "error",
    error: { type, message: "Why.", code: wire, param: "a" },
    request_id: "req_1",
  });
});

test("the refusal of a thread says what Anthropic's SDK reads, so that it goes on without one", () => {
  const fault = new Fault("unsupported_parameter", { message: "Why.", param: "thread" });
  expect(messageFaultBody(fault, "req_1").error).toMatchObject({
    details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
  });
});
