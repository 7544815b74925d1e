import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { type SentEvent, sentEvents } from "../../../services/agent/runtimes/runtime-answer.ts";

async function* piecesOf(...pieces: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece);
}

/** A batch for each piece, and one for the end. */
async function batchesOf(
  pieces: AsyncIterable<Uint8Array>,
  eventBytesMax?: number,
): Promise<readonly (readonly SentEvent[])[]> {
  const batches: SentEvent[][] = [];
  const sent = sentEvents((event) => void batches.at(-1)?.push(event), eventBytesMax);
  for await (const piece of pieces) {
    batches.push([]);
    sent.push(piece);
  }
  batches.push([]);
  sent.end();
  return batches;
}

async function dataOf(...pieces: (string | Uint8Array)[]): Promise<string[]> {
  const events: SentEvent[] = (await batchesOf(piecesOf(...pieces))).flat();
  return events.map((event) => (event.kind === "event" ? event.data : `:${event.text}`));
}

test("server-sent events come as one batch for each piece, empty when a piece completes none", async () => {
  const batches = await batchesOf(piecesOf("data: 1\n\ndata: 2\n\nda", "ta: 3\n", "\n"));
  expect(batches.map((batch) => batch.length)).toEqual([2, 0, 1, 0]);
});

test.each([
  ["\\n", "data: one\n\ndata: two\n\n"],
  ["\\r\\n", "data: one\r\n\r\ndata: two\r\n\r\n"],
  ["\\r", "data: one\r\rdata: two\r\r"],
])("server-sent events end their lines with %s", async (_, body) => {
  expect(await dataOf(body)).toEqual(["one", "two"]);
});

test("server-sent events are the same however the bytes are cut, also within a character or a line's end", async () => {
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
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 12 }), async (cuts) => {
      const ends = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const pieces = ends.slice(1).map((end, at) => bytes.subarray(ends[at], end));
      expect((await batchesOf(piecesOf(...pieces))).flat()).toEqual(expected);
    }),
  );
});

test("server-sent events may lack the space behind the colon, and keep a second one", async () => {
  expect(await dataOf("data:1\n\ndata:  2\n\n")).toEqual(["1", " 2"]);
});

test("server-sent events may carry an id and a retry, and lack the empty line at the end", async () => {
  expect(await dataOf("id: 7\nretry: 10\ndata: 1\n\ndata: 2")).toEqual(["1", "2"]);
});

test("server-sent events without data are none", async () => {
  expect(await dataOf("event: ping\n\n\n\ndata: 1\n\n")).toEqual(["1"]);
});

test("server-sent events are told apart from comments", async () => {
  expect(await dataOf(": keepalive 512/2048\n\n:\ndata: 1\n\n")).toEqual([":keepalive 512/2048", ":", "1"]);
});

test.each([
  ["HTML", "<!doctype html>\n<html>secret</html>\n"],
  ["JSON", '{"error":"secret"}\n'],
  ["text", "secret gateway timeout\n"],
])("server-sent events are not %s, which is a fault that does not repeat it", async (what, body) => {
  const fault = Fault.from(await batchesOf(piecesOf(body)).catch((error: unknown) => error));
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
])("server-sent events longer than the limit are refused by its name: %s", async (_, pieces) => {
  const refused = batchesOf(piecesOf(...pieces), 12);
  await expect(refused).rejects.toThrow("longer than 12 bytes (runtimeLineBytesMax)");
});

test("server-sent events that came before one that fails are not lost with it", async () => {
  const events: SentEvent[] = [];
  const sent = sentEvents((event) => void events.push(event));
  expect(() => sent.push(Buffer.from("data: 1\n\n<html>\n"))).toThrow(Fault);
  expect(events).toEqual([{ kind: "event", name: "", data: "1" }]);
});
