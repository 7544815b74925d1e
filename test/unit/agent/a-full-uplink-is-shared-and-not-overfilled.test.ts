import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Broker } from "#shared/broker/broker.ts";
import { decodeFrame, encodeFrame, type Frame, type DataRecord } from "#shared/protocol/frame.ts";
import { Outbox } from "../../../services/agent/jobs/outbox.ts";
import { nextBase, nextWindow, startWindowBytes, Uplink } from "../../../services/agent/jobs/uplink.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { recordsIn } from "../../harness/answer-payload.ts";

const end = { finishReason: "stop", usage: null, timings: { queuedMs: 0, firstTokenMs: null, totalMs: 1 } } as const;
const word: DataRecord = { head: "t", text: "x".repeat(196) };
const creditBytes = 256 * 1024;

/** A broker behind a line on which nothing arrives until the test drains it. */
function stuckLine() {
  const clock = new TurnableClock();
  const sent: { readonly subject: string; readonly frame: Frame; readonly bytes: number }[] = [];
  let flushes: PromiseWithResolvers<void>[] = [];
  let listener: ((connected: boolean) => void) | undefined;
  const broker: Broker = {
    connected: true,
    trouble: undefined,
    connectionId: undefined,
    connectedSinceMs: 0,
    roundTripMs: 0,
    payloadBytesMax: 1024 * 1024,
    publish(subject, data) {
      const decoded = decodeFrame(data);
      if (decoded.outcome === "frame") sent.push({ subject, frame: decoded.frame, bytes: data.byteLength });
      return "sent";
    },
    subscribe: () => ({ end: () => undefined }),
    onDenied: () => ({ end: () => undefined }),
    onChange(told) {
      listener = told;
      return { end: () => undefined };
    },
    flush() {
      const flush = Promise.withResolvers<void>();
      flushes.push(flush);
      return flush.promise;
    },
    close: async () => undefined,
  };
  const uplink = new Uplink({ broker, clock });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 4; turn += 1) await nextTurn();
  };
  return {
    uplink,
    sent,
    settle,
    of: (subject: string) => sent.filter((each) => each.subject === subject),
    bytes: () => sent.reduce((sum, { bytes }) => sum + bytes, 0),
    stream: (subject: string) => new Outbox({ credit: creditBytes }, { uplink, clock, subject }),
    async drain(afterMs: number): Promise<void> {
      const due = flushes;
      flushes = [];
      clock.advance(afterMs);
      for (const flush of due) flush.resolve();
      await settle();
    },
    async breakAndHeal(): Promise<void> {
      listener?.(false);
      listener?.(true);
      await settle();
    },
  };
}

function write(frames: Outbox, events: number): Promise<void> | undefined {
  return frames.write(
    Array.from({ length: events }, () => word),
    events,
  );
}

test("an uplink that drains nothing holds no more than its window, and a beat passes it at once", async () => {
  const line = stuckLine();
  await line.drain(1);
  const streams = ["a", "b", "c"].map((subject) => line.stream(subject));
  for (const frames of streams) void write(frames, 1_000);
  await line.settle();
  expect(line.bytes()).toBeLessThan(startWindowBytes * 1.3);
  expect(line.uplink.isFull).toBe(true);
  line.uplink.publish("beats", encodeFrame({ kind: "beat" }, new Uint8Array()));
  expect(line.sent.at(-1)?.subject).toBe("beats");
});

test("slow streams share a slow uplink alike, a new one goes first, and events that waited leave joined", async () => {
  const line = stuckLine();
  await line.drain(1);
  const streams = ["a", "b", "c", "d"].map((subject) => line.stream(subject));
  for (const frames of streams) void write(frames, 1_000);
  for (let times = 0; times < 20; times += 1) await line.drain(150);
  const bytesOf = (subject: string): number => line.of(subject).reduce((sum, { bytes }) => sum + bytes, 0);
  const shares = ["a", "b", "c", "d"].map(bytesOf);
  expect(Math.max(...shares) / Math.min(...shares)).toBeLessThan(1.5);

  const before = line.sent.length;
  void write(line.stream("late"), 1);
  await line.settle();
  expect(line.sent.length).toBe(before);
  await line.drain(150);
  expect(line.sent[before]?.subject).toBe("late");

  const frames = line.of("a").map(({ frame }) => frame);
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, place) => place + 1));
  expect(frames.every(({ payload }) => recordsIn(payload).length > 0)).toBe(true);
  const mean = frames.reduce((sum, { payload }) => sum + payload.byteLength, 0) / frames.length;
  expect(mean).toBeGreaterThan(2 * word.text.length);
});

test("texts that come while the uplink is full are joined, and a text longer than a turn is cut", async () => {
  const line = stuckLine();
  await line.drain(1);
  const other = line.stream("other");
  const frames = line.stream("a");
  void write(other, 1_000);
  await line.settle();
  expect(line.uplink.isFull).toBe(true);
  const tokens = Array.from({ length: 3_000 }, (_, at) => ` ${at}`);
  for (const text of tokens) void frames.write([{ head: "t", text }], 1);
  frames.end("end", end);
  for (let times = 0; times < 60; times += 1) await line.drain(150);
  const payloads = line.of("a").map(({ frame }) => frame.payload);
  const records = payloads.slice(0, -1).flatMap(recordsIn);
  expect(records.map(({ text }) => text).join("")).toBe(tokens.join(""));
  expect(records.length).toBeLessThan(tokens.length / 50);
  expect(line.of("a").at(-1)?.frame.kind).toBe("end");
});

const sequencesOf = (line: ReturnType<typeof stuckLine>): number[] => line.of("a").map(({ frame }) => frame.sequence);
const ask = (frames: Outbox, from: number): boolean => frames.attach({ from, credit: 2 * creditBytes }, "a");

test("frames on their way are not sent again, and those that arrived are", async () => {
  const line = stuckLine();
  await line.drain(1);
  const frames = line.stream("a");
  for (let times = 0; times < 3; times += 1) {
    void write(frames, 1);
    await line.settle();
  }
  for (let times = 0; times < 5; times += 1) expect(ask(frames, 2)).toBe(true);
  await line.settle();
  expect(sequencesOf(line)).toEqual([1, 2, 3]);
  await line.drain(20);
  expect(ask(frames, 2)).toBe(true);
  expect(ask(frames, 2)).toBe(true);
  await line.settle();
  expect(sequencesOf(line)).toEqual([1, 2, 3, 2, 3]);
});

test("frames that are sent again take turns, and leave out those that the gateway got meanwhile", async () => {
  const line = stuckLine();
  await line.drain(1);
  const frames = line.stream("a");
  for (let times = 0; times < 40; times += 1) {
    void write(frames, 5);
    await line.drain(1);
  }
  await line.drain(200);
  const before = line.sent.length;
  await line.breakAndHeal();
  expect(ask(frames, 1)).toBe(true);
  await line.settle();
  const sent = line.sent.slice(before).map(({ frame }) => frame.sequence);
  expect(sent[0]).toBe(1);
  expect(sent.length).toBeLessThan(40);
  expect(ask(frames, 30)).toBe(true);
  for (let times = 0; times < 10; times += 1) await line.drain(100);
  const after = line.sent.slice(before + sent.length).map(({ frame }) => frame.sequence);
  expect(after).toEqual([30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40]);
});

/** Runs the rule against a line of this rate and length until it rests. */
function settled(bytesPerMs: number, roundTripMs: number): { windowBytes: number; delayMs: number } {
  let windowBytes = startWindowBytes;
  let baseMs = roundTripMs;
  let delayMs = 0;
  for (let times = 0; times < 200; times += 1) {
    delayMs = Math.max(roundTripMs, windowBytes / bytesPerMs);
    baseMs = nextBase({ windowBytes, delayMs, baseMs });
    windowBytes = nextWindow({ windowBytes, aheadBytes: windowBytes, delayMs, baseMs });
  }
  return { windowBytes, delayMs };
}

test.each([
  [16, 1],
  [32, 30],
  [125, 1],
  [125, 300],
  [125, 1_000],
  [1_000, 20],
])(
  "the window keeps a line of %i bytes/ms and a round trip of %i ms busy, and its queue short",
  (rate, roundTripMs) => {
    const { windowBytes, delayMs } = settled(rate, roundTripMs);
    expect(windowBytes).toBeGreaterThanOrEqual(rate * roundTripMs);
    expect(delayMs - roundTripMs).toBeGreaterThan(20);
    expect(delayMs - roundTripMs).toBeLessThanOrEqual(260);
  },
);

test("the window grows while a fast line answers at once, also where streams do not fill it", () => {
  expect(nextWindow({ windowBytes: 16_384, aheadBytes: 4_096, delayMs: 2, baseMs: 1 })).toBe(32_768);
  expect(nextWindow({ windowBytes: 16_384, aheadBytes: 700, delayMs: 2, baseMs: 1 })).toBe(16_384);
  expect(settled(100_000, 1).windowBytes).toBe(4 * 1024 * 1024);
});

test("the window shrinks at once to what a line drains that has become slow", () => {
  const windowBytes = nextWindow({ windowBytes: 4_000_000, aheadBytes: 120_000, delayMs: 1_000, baseMs: 10 });
  expect(windowBytes).toBeLessThan(20_000);
});

test("a delay that the smallest window does not shorten counts as the round trip", () => {
  expect(nextBase({ windowBytes: 2_048, delayMs: 600, baseMs: 20 })).toBe(600);
  expect(nextBase({ windowBytes: 8_192, delayMs: 600, baseMs: 20 })).toBe(20);
});
