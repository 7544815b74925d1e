import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonLines } from "../../../services/agent/runtimes/ollama/ollama-answer.ts";
import {
  readStream,
  RuntimeAnswer,
  runtimeLineBytesMax,
  type SentEvent,
  sentEvents,
  type Splitter,
} from "../../../services/agent/runtimes/runtime-answer.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";
import { Fault } from "#shared/fault/fault.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Dispatcher } from "undici";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { EmitEvents } from "../../../services/agent/runtimes/runtime.ts";

/** Returns the values that each piece of a body completes, and last those that its end does. */
function completedBy<Value>(
  open: (take: (value: Value) => void) => Splitter,
  pieces: readonly (string | Uint8Array)[],
): Value[][] {
  const batches: Value[][] = [];
  const splitter = open((value) => void batches.at(-1)?.push(value));
  for (const piece of pieces) {
    batches.push([]);
    splitter.push(Buffer.from(piece));
  }
  batches.push([]);
  splitter.end();
  return batches;
}

/** These bytes in pieces, cut anywhere. */
const cutAnywhere = (bytes: Buffer): fc.Arbitrary<Uint8Array[]> =>
  fc.array(fc.nat(bytes.length), { maxLength: 12 }).map((cuts) => {
    const ends = [0, ...cuts.toSorted((one, other) => one - other), bytes.length];
    return ends.slice(1).map((end, at) => bytes.subarray(ends[at], end));
  });

const linesOf = (pieces: readonly (string | Uint8Array)[], lineBytesMax?: number): unknown[][] =>
  completedBy((take) => jsonLines(take, lineBytesMax), pieces);

test("JSON lines come as one batch for each piece, empty when a piece completes no line", () => {
  expect(linesOf(['1\n2\n"a', "b", '"\n'])).toEqual([[1, 2], [], ["ab"], []]);
});

test("JSON lines may lack the last newline, and may be empty", () => {
  expect(linesOf(["1\r\n\n  \n2"]).flat()).toEqual([1, 2]);
});

test("JSON lines are the same however the bytes are cut, also within a character", () => {
  const values = [{ text: "grüße 🌍" }, [1, 2], "東京"];
  const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
  fc.assert(
    fc.property(cutAnywhere(bytes), (pieces) => {
      expect(linesOf(pieces).flat()).toEqual(values);
    }),
  );
});

test.each([
  ["within one piece", ['"123456789"\n']],
  ["over several pieces", ['"1234', "5678", '9"\n']],
  ["without an end", ['"1234', "56789"]],
])("JSON lines longer than the limit are refused by its name: %s", (_, pieces) => {
  expect(() => linesOf(pieces, 8)).toThrow("longer than 8 bytes (runtimeLineBytesMax)");
});

test("JSON lines just at the limit are taken", () => {
  expect(linesOf(['"123456"\n'], 8).flat()).toEqual(["123456"]);
  expect(runtimeLineBytesMax).toBeGreaterThan(1024 * 1024);
});

test("JSON lines that are not JSON are a fault that does not repeat them", () => {
  const fault = faultThrownBy(() => linesOf(["secret prompt\n"]));
  expect(fault).toMatchObject({ code: "upstream_error", message: "The runtime sent a line that is not JSON." });
  expect(`${fault.internal} ${String(fault.cause)}`).not.toContain("secret");
});

const eventsOf = (pieces: readonly (string | Uint8Array)[], eventBytesMax?: number): SentEvent[][] =>
  completedBy((take) => sentEvents(take, eventBytesMax), pieces);

const dataOf = (body: string): string[] =>
  eventsOf([body])
    .flat()
    .map((event) => (event.kind === "event" ? event.data : `:${event.text}`));

test("server-sent events come as one batch for each piece, empty when a piece completes none", () => {
  const batches = eventsOf(["data: 1\n\ndata: 2\n\nda", "ta: 3\n", "\n"]);
  expect(batches.map((batch) => batch.length)).toEqual([2, 0, 1, 0]);
});

test.each([
  ["lines that end with \\n", "data: one\n\ndata: two\n\n", ["one", "two"]],
  ["lines that end with \\r\\n", "data: one\r\n\r\ndata: two\r\n\r\n", ["one", "two"]],
  ["lines that end with \\r", "data: one\r\rdata: two\r\r", ["one", "two"]],
  ["no space behind the colon, or two of which one counts", "data:1\n\ndata:  2\n\n", ["1", " 2"]],
  ["an id and a retry, and no empty line at the end", "id: 7\nretry: 10\ndata: 1\n\ndata: 2", ["1", "2"]],
  ["a name without data, which is none", "event: ping\n\n\n\ndata: 1\n\n", ["1"]],
  ["comments, which are none", ": keepalive 512/2048\n\n:\ndata: 1\n\n", [":keepalive 512/2048", ":", "1"]],
])("server-sent events are read that have %s", (_, body, data) => {
  expect(dataOf(body)).toEqual(data);
});

test("server-sent events are the same however the bytes are cut, also within a character or a line's end", () => {
  const bytes = Buffer.from(
    '\uFEFFdata: {"text":"grüße 🌍"}\r\n\r\n: ping\r\n\r\ndata:東\r\ndata: 京\r\n\r\nevent: error\rdata: x\r\rdata: y\r\r',
  );
  const expected: SentEvent[] = [
    { kind: "event", name: "", data: '{"text":"grüße 🌍"}' },
    { kind: "comment", text: "ping" },
    { kind: "event", name: "", data: "東\n京" },
    { kind: "event", name: "error", data: "x" },
    { kind: "event", name: "", data: "y" },
  ];
  fc.assert(
    fc.property(cutAnywhere(bytes), (pieces) => {
      expect(eventsOf(pieces).flat()).toEqual(expected);
    }),
  );
});

test.each([
  ["HTML", "<!doctype html>\n<html>secret</html>\n"],
  ["JSON", '{"error":"secret"}\n'],
  ["text", "secret gateway timeout\n"],
])("server-sent events are not %s, which is a fault that does not repeat it", (what, body) => {
  const fault = faultThrownBy(() => eventsOf([body]));
  expect(fault).toMatchObject({
    code: "upstream_error",
    message: "The runtime did not answer with server-sent events.",
  });
  expect(fault.internal).toContain(what);
  expect(`${fault.internal} ${String(fault.cause)}`).not.toContain("secret");
});

test.each([
  ["in one line", ["data: 1234", "56789"]],
  ["in one line that the next piece would end", ["data: 12", "3456", "789", "\n\n"]],
  ["in many lines", ["data: 1\ndata: 2\ndata: 3\ndata: 4\n", "data: 5\ndata: 6\ndata: 7\n", "\n"]],
  ["in many empty lines", ["data\n".repeat(14)]],
])("server-sent events longer than the limit are refused by its name: %s", (_, pieces) => {
  expect(() => eventsOf(pieces, 12)).toThrow("longer than 12 bytes (runtimeLineBytesMax)");
});

test("server-sent events that came before one that fails are not lost with it", () => {
  const events: SentEvent[] = [];
  const sent = sentEvents((event) => void events.push(event));
  expect(() => sent.push(Buffer.from("data: 1\n\n<html>\n"))).toThrow(Fault);
  expect(events).toEqual([{ kind: "event", name: "", data: "1" }]);
});

/** Reads a body of JSON texts, each of which is a text of the answer. Returns functions that send pieces of it. */
function reading(emit: EmitEvents) {
  let handler: Dispatcher.DispatchHandler | undefined;
  const body = new RuntimeAnswer({
    signal: new AbortController().signal,
    faultOf: () => new Fault("bad_request", { message: "refused" }),
    ask: (given) => {
      handler = given;
      return undefined;
    },
  });
  const events: AnswerEvent[] = [];
  const splitter = jsonLines((text) => void events.push({ kind: "text", text: String(text) }));
  const done = readStream(body, { splitter, events, onPiece: () => undefined }, emit);
  const controller = { pause: () => undefined, resume: () => undefined, abort: () => undefined };
  const socket = controller as unknown as Dispatcher.DispatchController;
  handler?.onRequestStart?.(socket, undefined);
  handler?.onResponseStart?.(socket, 200, {});
  return {
    done,
    send: (piece: string) => handler?.onResponseData?.(socket, Buffer.from(piece)),
    end: () => handler?.onResponseEnd?.(socket, {}),
  };
}

const textsOf = (events: readonly AnswerEvent[]): string[] =>
  events.map((event) => (event.kind === "text" ? event.text : event.kind));

test("a stream emits one batch for each piece, and the next batch waits for the taker's promise", async () => {
  const taken: string[][] = [];
  const room = Promise.withResolvers<void>();
  const { done, send, end } = reading((events) => {
    taken.push(textsOf(events));
    return taken.length === 1 ? room.promise : undefined;
  });
  send('"a"\n"b"\n"c');
  await nextTurn();
  send('"\n');
  await nextTurn();
  send('"d"\n');
  await nextTurn();
  expect(taken).toEqual([["a", "b"]]);
  room.resolve();
  end();
  await done;
  expect(taken).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
});

test("events before a fault in the same piece are emitted before the stream fails", async () => {
  const taken: string[] = [];
  const { done, send } = reading((events) => void taken.push(...textsOf(events)));
  const failed = expect(done).rejects.toMatchObject({ message: "The runtime sent a line that is not JSON." });
  send('"a"\noops\n"b"\n');
  await failed;
  expect(taken).toEqual(["a"]);
});
