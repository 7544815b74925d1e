import { writerOf } from "./writer-of-a-test.ts";
import { offerOf } from "./offers.ts";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { BeatRow } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import { ChatChoice, ChatChunks } from "../../../services/gateway/apis/chat/render-chat.ts";
import { WholeCompletion } from "../../../services/gateway/chats/render-completions.ts";
import { AnswerCourse } from "../../../services/gateway/jobs/answer-course.ts";
import type { AnswerRenderer, AnswerWriter } from "../../../services/gateway/jobs/answer-parts.ts";
import type { JobEvent } from "../../../services/gateway/jobs/job-events.ts";
import { end } from "./follower-on-a-wire.ts";
import { jsonPayload, payloadOf } from "../../harness/answer-payload.ts";

const head = { id: "chatcmpl-1", createdSeconds: 7, model: "llama3" };
const hello: AnswerEvent = { kind: "text", text: "Hello" };
const endOf = (completionTokens: number): JobEvent => {
  const usage = { promptTokens: 1, completionTokens };
  return { kind: "end", end: { ...end, usage }, receivedBytes: 1, heldBack: false };
};
const stop: AnswerEvent = { kind: "finish", reason: "stop" };

function rendered(renderer: AnswerRenderer, writer: Partial<AnswerWriter>): AnswerCourse {
  const course = new AnswerCourse({ clock: { now: () => 0 } });
  course.following(writerOf(writer), { streamed: true, render: () => renderer });
  course.onOffer(offerOf("attic"));
  return course;
}

function streamed() {
  const heard: string[] = [];
  const onData = (bytes: Uint8Array): void => void heard.push(Buffer.from(bytes).toString());
  return { heard, answer: rendered(new ChatChunks(head, false), { onData }) };
}

test("a rendered answer tells its writer of a load only if its own model is loaded", () => {
  const heard: unknown[] = [];
  const onTick: AnswerWriter["onTick"] = (_, __, load) => void heard.push(load?.model);
  const answer = rendered(new ChatChunks(head, false), { onData: () => undefined, onTick });
  const row: BeatRow = ["job", "loading", 0, 0, 0, 0];
  const model = answer.model ?? "";
  for (const each of [model, `${model}\n\ndata: forged`]) {
    answer.on({ kind: "beat", row: row, load: { model: each, percent: 1, leftMs: 1_000 } });
    answer.on({ kind: "tick", nowMs: 5, row: row });
  }
  expect(heard).toEqual([model, undefined]);
});

test("a rendered answer reports a backlog only when its writer has a client", () => {
  const onData = (): void => undefined;
  const backlog = (writer: Partial<AnswerWriter>) => rendered(new ChatChunks(head, false), writer).unreadBytes();
  expect([backlog({ onData, unreadBytes: () => 5 }), backlog({ onData })]).toEqual([5, undefined]);
});

test("a rendered answer keeps a record that goes on in the next frame, however it is cut", () => {
  const long: AnswerEvent = { kind: "tool-call-start", index: 0, id: "call_1", name: "é".repeat(3_000) };
  const payload = payloadOf(hello, long, stop);
  for (const cut of [20, 21, 1_001, payload.length - 60]) {
    const { heard, answer } = streamed();
    const at = payload.toString().slice(0, cut);
    answer.on({ kind: "data", payload: Buffer.from(at), outputTokens: 1 });
    answer.on({ kind: "data", payload: payload.subarray(Buffer.byteLength(at)), outputTokens: 2 });
    answer.on(endOf(2));
    const whole = streamed();
    whole.answer.on({ kind: "data", payload: payload, outputTokens: 2 });
    expect(heard.join("")).toBe(whole.heard.join(""));
  }
});

test("a rendered answer escapes a text that looks like the end of a stream", () => {
  const { heard, answer } = streamed();
  const text = '"}\n\ndata: [DONE]\n\nevent: x\r\rdata:[DONE]\n\n';
  const payload = payloadOf({ kind: "text", text }, { kind: "reasoning", text }, stop);
  answer.on({ kind: "data", payload, outputTokens: 1 });
  const events = heard.join("").split("\n\n");
  expect(events.pop()).toBe("");
  for (const event of events) expect(event).toMatch(/^data: \{[^\r\n]*\}$/);
  expect(heard.join("")).toContain(JSON.stringify(text));
});

test("a rendered answer reports what a whole answer holds while it gathers", () => {
  const held: number[] = [];
  const whole = new WholeCompletion(head, { object: "chat.completion", begin: () => new ChatChoice() });
  const answer = rendered(whole, {
    onData: (bytes) => void held.push(-bytes.length),
    onHold: (size) => void held.push(size),
  });
  const payload = payloadOf(hello);
  for (let times = 0; times < 2; times += 1) answer.on({ kind: "data", payload: payload, outputTokens: 1 });
  answer.on({ kind: "data", payload: payloadOf(stop), outputTokens: 1 });
  answer.on(endOf(2));
  expect(held.slice(0, 2)).toEqual([payload.length, 2 * payload.length]);
  expect(held.at(-1)).toBeLessThan(0);
});

test.each<[string, Uint8Array]>([
  ["bytes that are not UTF-8", Uint8Array.of(0x74, 0x31, 0x3a, 0xff)],
  ["server-sent events", Buffer.from("data: [DONE]\n\n")],
  ["a record with an unknown head", Buffer.from("x1:a")],
  ["a record without a length", Buffer.from("t:a")],
  ["a negative length", Buffer.from("t-1:a")],
  ["a length in another form", Buffer.from("t1e3:a")],
  ["an endless length", Buffer.from(`t${"1".repeat(400)}`)],
  ["a length without an end", Buffer.from("t12")],
  ["an empty text", Buffer.from("t0:")],
  ["a record above its limit", Buffer.from(`j${limits.answerRecordCharactersMax + 1}:`)],
  ["JSON that is no answer event", jsonPayload({ kind: "dance" })],
  ["an answer event with a field too many", jsonPayload({ kind: "text", text: "a", html: "<b>" })],
  ["a choice beyond the limit", jsonPayload({ kind: "text", choice: 128, text: "a" })],
  ["a syntax error", Buffer.from("j2:{]")],
  ["a vector without an index", Buffer.from("v4:AAAA")],
  ["a vector that is no base64", Buffer.from("v4:0:%%")],
  ["a vector with half a number", Buffer.from("v6:0:AAAA")],
])("a rendered answer ends with a fault of the machine for %s", (_, payload) => {
  const { heard, answer } = streamed();
  const fault = expect.objectContaining({
    code: "upstream_error",
    internal: expect.stringContaining("the machine violated the protocol"),
  });
  expect(() => answer.on({ kind: "data", payload: payload, outputTokens: 1 })).toThrow(fault);
  expect(heard).toEqual([]);
});

test("a rendered answer is no success when its finish is missing or its last record is cut", () => {
  const { answer } = streamed();
  answer.on({ kind: "data", payload: payloadOf(hello), outputTokens: 1 });
  expect(() => answer.on(endOf(1))).toThrow(expect.objectContaining({ code: "upstream_error" }));
  const cut = streamed().answer;
  cut.on({ kind: "data", payload: payloadOf(stop, hello).subarray(0, -1), outputTokens: 1 });
  expect(() => cut.on(endOf(1))).toThrow(expect.objectContaining({ code: "upstream_error" }));
});
