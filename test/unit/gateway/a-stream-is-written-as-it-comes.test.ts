import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { BeatRow } from "#shared/protocol/frame-payload.ts";
import { clientBacklogBytesMax } from "../../../services/gateway/jobs/write-answer.ts";
import { streamToAClient, timing } from "./stream-to-a-client.ts";

const event = (text: string): string => `data: {"text":"${text}"}\n\n`;
const done = "data: [DONE]\n\n";
const lost = new Fault("agent_disconnected", { message: "The GPU machine stopped answering." });
const queued: BeatRow = ["job", "queued", 3, 0, 0, 0];
const prefill: BeatRow = ["job", "prefill", 0, 0, 0, 0];

test("a stream is to the client byte for byte what the machine sent, were it no JSON at all, and then [DONE]", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 500 }), { minLength: 1, maxLength: 10 }),
      async (frames) => {
        const { writer, all } = await streamToAClient();
        for (const frame of frames) writer.onData(frame);
        writer.end();
        expect((await all()).equals(Buffer.concat([...frames, Buffer.from(done)]))).toBe(true);
      },
    ),
    { numRuns: 15 },
  );
});

test("a stream begins with a 200 that says what it is and that nobody may hold it back", async () => {
  const { writer, due, has, status, header } = await streamToAClient();
  due.set("x-request-id", "req_1");
  expect(writer.begun).toBe(false);
  writer.onData(Buffer.from(event("a")));
  await has("a");
  expect([status(), writer.begun]).toEqual([200, true]);
  expect(header("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(header("cache-control")).toBe("no-cache");
  expect(header("x-accel-buffering")).toBe("no");
  expect(header("x-request-id")).toBe("req_1");
});

test("a stream sends each piece at once", async () => {
  const { writer, has, text } = await streamToAClient();
  for (const piece of ["one", "two", "three"]) {
    writer.onData(Buffer.from(event(piece)));
    await has(piece);
  }
  expect(text()).toBe(`${event("one")}${event("two")}${event("three")}`);
});

test("a stream that ends without a word of the model is a success all the same", async () => {
  const { writer, all, status } = await streamToAClient();
  writer.end();
  expect((await all()).toString()).toBe(done);
  expect(status()).toBe(200);
});

test("a stream that fails ends with the error as an event, without [DONE]", async () => {
  const { writer, all } = await streamToAClient();
  writer.onData(Buffer.from(event("a")));
  writer.fail(lost);
  const error = { message: lost.message, type: "server_error", param: null, code: "agent_disconnected" };
  expect((await all()).toString()).toBe(`${event("a")}data: ${JSON.stringify({ error })}\n\n`);
});

test("the status of a stream is held back until the first piece, so that a failure before can still have its own", async () => {
  const { writer } = await streamToAClient();
  writer.onTick(0, undefined);
  writer.onTick(60_000, undefined);
  writer.onAccept("attic", "llama3");
  writer.onTick(60_050, queued);
  writer.onTick(60_050 + timing.statusHeldMs - 1, queued);
  expect(writer.begun).toBe(false);
});

test("the status of a stream goes out when an accepted request has waited for statusHeldMs, with a comment that says for what", async () => {
  const { writer, has, all } = await streamToAClient();
  writer.onAccept("attic", "llama3");
  writer.onTick(1_000, queued);
  writer.onTick(1_000 + timing.statusHeldMs, queued);
  await has(": queued at 3\n\n");
  writer.onData(Buffer.from(event("a")));
  writer.end();
  expect((await all()).toString()).toBe(`: queued at 3\n\n${event("a")}${done}`);
});

test("the status of a stream is followed by a comment every commentIntervalMs while nothing else comes", async () => {
  const { writer, all } = await streamToAClient();
  writer.onAccept("attic", "llama3");
  writer.onTick(0, undefined);
  const waitedMs = 3 * timing.commentIntervalMs + timing.statusHeldMs;
  for (let nowMs = 50; nowMs <= waitedMs; nowMs += 50) writer.onTick(nowMs, nowMs > 20_000 ? prefill : undefined);
  writer.end();
  expect((await all()).toString()).toBe(`: waiting\n\n: waiting\n\n: prefill\n\n: prefill\n\n${done}`);
});

test("the status of a stream is followed by the news as it comes: the next place in the queue, a model that is loaded, not the same twice", async () => {
  const { writer, all } = await streamToAClient();
  const at = (place: number): BeatRow => ["job", "queued", place, 0, 0, 0];
  const loading: BeatRow = ["job", "loading", 0, 0, 0, 0];
  writer.onAccept("attic", "llama3");
  for (const [nowMs, row] of [
    [0, at(3)],
    [5_000, at(3)],
    [5_500, at(2)],
    [6_000, at(2)],
    [6_500, at(2)],
    [7_500, at(1)],
    [8_600, loading],
    [9_700, loading],
    [18_600, loading],
  ] as const) {
    writer.onTick(nowMs, row);
  }
  writer.onData(Buffer.from(event("a")));
  writer.onTick(20_000, prefill);
  writer.onTick(28_000, prefill);
  writer.end();
  const comments = ["queued at 3", "queued at 2", "queued at 1", "loading", "loading"];
  const told = comments.map((comment) => `: ${comment}\n\n`).join("");
  expect((await all()).toString()).toBe(`${told}${event("a")}${done}`);
});

test("the status of a stream is followed by the progress of the load that its request waits for", async () => {
  const { writer, all } = await streamToAClient();
  const loading: BeatRow = ["job", "loading", 0, 0, 0, 0];
  writer.onAccept("attic", "llama3");
  writer.onTick(0, loading);
  writer.onTick(5_000, loading, { model: "llama3", percent: 30, leftMs: 11_400 });
  writer.onTick(7_000, loading, { model: "llama3", percent: 42, leftMs: 9_400 });
  writer.onTick(8_500, loading, { model: "llama3", percent: 42, leftMs: 9_400 });
  writer.onTick(9_000, loading, { model: "llama3", percent: 42, leftMs: 9_400 });
  writer.end();
  const told = [30, 42, 42]
    .map((percent) => `: loading llama3 on attic, ${percent} %, about ${percent === 30 ? 12 : 10} s\n\n`)
    .join("");
  expect((await all()).toString()).toBe(`${told}${done}`);
});

test("an answer says which machine gives it, and of several the last one that had it", async () => {
  const { writer, has, header } = await streamToAClient();
  writer.onAccept("attic", "llama3");
  writer.onAccept("cellar", "llama3");
  writer.onData(Buffer.from(event("a")));
  await has("a");
  expect(header("machine")).toBe("cellar");
});

test("a client that leaves too much unread is told of to the owner of the request, by the limit's name", async () => {
  const { writer, cuts } = await streamToAClient({ reads: false });
  const piece = Buffer.alloc(1024 * 1024, "x");
  const piecesMax = 64;
  for (let count = 0; count < piecesMax && cuts.length === 0; count += 1) writer.onData(piece);
  expect(cuts).toMatchObject([{ code: "slow_client", message: expect.stringContaining("clientBacklogBytesMax") }]);
  expect(cuts[0]?.message).toContain(String(clientBacklogBytesMax));
});
