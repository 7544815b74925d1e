import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Broker } from "#shared/broker/broker.ts";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { decodeFrame, isTerminal, type Frame, jsonRecord, type DataRecord } from "#shared/protocol/frame.ts";
import { limits } from "#shared/protocol/limits.ts";
import { Outbox } from "../../../services/agent/jobs/outbox.ts";
import { Uplink } from "../../../services/agent/jobs/uplink.ts";
import { recordsIn } from "../../harness/answer-payload.ts";

const log = createLog({ level: "silent", name: "test" });
const subject = "a.job";
const end = { finishReason: "stop", usage: null, timings: { queuedMs: 0, firstTokenMs: null, totalMs: 1 } } as const;

function emitter({ whole = false } = {}) {
  const broker: Broker = new MemoryBroker({ clock, log }).connect();
  const messages: Uint8Array[] = [];
  broker.subscribe(subject, ({ data }) => void messages.push(data));
  const frames = (): Frame[] =>
    messages.map((message) => {
      const decoded = decodeFrame(message);
      if (decoded.outcome !== "frame") throw new Error(decoded.outcome);
      return decoded.frame;
    });
  return {
    frames: new Outbox({ whole }, { uplink: new Uplink({ broker, clock }), clock, subject }),
    heard: frames,
    messages,
  };
}
/** One turn in which the frames leave, and one in which they arrive. */
async function delivered(): Promise<void> {
  await nextTurn();
  await nextTurn();
}
const text = (given: string): DataRecord => ({ head: "t", text: given });
/** The records with adjacent texts joined, as a whole answer has them. */
function joined(records: readonly DataRecord[]): DataRecord[] {
  const all: DataRecord[] = [];
  for (const { head, text: given } of records) {
    const last = all.at(-1);
    if (head !== "j" && last?.head === head) all[all.length - 1] = { head, text: last.text + given };
    else all.push({ head, text: given });
  }
  return all;
}
const payloads = (heard: readonly Frame[]): Buffer => Buffer.concat(heard.map(({ payload }) => payload));
const sequences = (heard: readonly Frame[]): number[] => heard.map(({ sequence }) => sequence);

test("the frames of a job are numbered 1, 2, 3 … and hold all that was written, whatever is written in which turn", async () => {
  const record = fc.oneof(
    fc.record({
      head: fc.constantFrom("t" as const, "r" as const),
      text: fc.string({ minLength: 1, unit: "grapheme" }),
    }),
    fc.integer({ min: 1, max: 3 * limits.dataFrameBytesMax }).map((size) => jsonRecord("é".repeat(size / 2))),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(record, { maxLength: 5 }), { maxLength: 5 }),
      fc.boolean(),
      async (turns, whole) => {
        const { frames, heard, messages } = emitter({ whole });
        const written = turns.flat();
        for (const records of turns) {
          void frames.write(records, 1);
          await nextTurn();
        }
        frames.end("end", end);
        await delivered();
        const all = heard();
        expect(sequences(all)).toEqual(all.map((_, place) => place + 1));
        expect(frames.lastSequence).toBe(all.length);
        expect(all.map(({ kind }) => isTerminal(kind))).toEqual(all.map((_, place) => place === all.length - 1));
        expect(joined(recordsIn(payloads(all.slice(0, -1))))).toEqual(joined(written));
        for (const { byteLength } of messages) expect(byteLength).toBeLessThanOrEqual(limits.brokerPayloadBytesMin);
        for (const { payload } of all) expect(payload.byteLength).toBeLessThanOrEqual(limits.dataFrameBytesMax);
      },
    ),
    { numRuns: 60 },
  );
});

test("the frames of a job are one for all that is written in one turn, with the latest number of tokens", async () => {
  const { frames, heard } = emitter();
  for (const [place, token] of ["a", "b", "c"].entries()) void frames.write([text(token)], place + 1);
  await delivered();
  void frames.write([text("d")], 4);
  await delivered();
  expect(heard().map(({ outputTokens, payload }) => [outputTokens, Buffer.from(payload).toString()])).toEqual([
    [3, "t1:at1:bt1:c"],
    [4, "t1:d"],
  ]);
});

test("the frames of a job end a job also when its runtime claims more tokens than a frame can carry", async () => {
  const { frames, heard } = emitter();
  void frames.write([text("a")], 2 ** 32);
  expect(() => frames.end("end", end)).not.toThrow();
  await delivered();
  expect(heard().map(({ kind }) => kind)).toEqual(["data", "end"]);
});
