import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { decodeFrame, type Frame, jsonRecord, recordTextMax, type DataRecord } from "#shared/protocol/frame.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { Outbox } from "../../../services/agent/jobs/outbox.ts";
import { Uplink } from "../../../services/agent/jobs/uplink.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { limits } from "#shared/protocol/limits.ts";
import { recordsIn } from "../../harness/answer-payload.ts";

const log = createLog({ level: "silent", name: "test" });
const textOf = (given: string): DataRecord => ({ head: "t", text: given });
const textIn = (payloads: readonly Uint8Array[]): string =>
  recordsIn(Buffer.concat(payloads))
    .map((record) => record.text)
    .join("");
const end = { finishReason: "stop", usage: null, timings: { queuedMs: 0, firstTokenMs: null, totalMs: 1 } } as const;

/** A gateway on a line that loses what the test wants lost, and which asks for what it misses. */
function lossyGateway(options: { readonly credit: number; readonly window: number; readonly loses: () => boolean }) {
  const { credit, window, loses } = options;
  const broker = new MemoryBroker({ clock, log }).connect();
  const frames = new Outbox({ credit }, { uplink: new Uplink({ broker, clock }), clock, subject: "a.job" });
  const received: Frame[] = [];
  let bytes = 0;
  let beyondCredit = 0;
  let limit = credit;
  let ended = false;
  const hear = ({ data }: { readonly data: Uint8Array }): void => {
    const decoded = decodeFrame(data);
    if (decoded.outcome !== "frame" || loses() || decoded.frame.sequence !== received.length + 1) return;
    received.push(decoded.frame);
    if (decoded.frame.kind === "data") bytes += decoded.frame.payload.byteLength;
    else ended = true;
    beyondCredit = Math.max(beyondCredit, bytes - limit);
  };
  broker.subscribe("a.job", hear);
  return {
    frames,
    ended: () => ended,
    beyondCredit: () => beyondCredit,
    text: () => textIn(received.filter(({ kind }) => kind === "data").map(({ payload }) => payload)),
    ask: (): void => {
      limit = bytes + window;
      frames.grant({ taken: bytes, limit });
      expect(frames.attach({ from: received.length + 1, credit: limit }, "a.job")).toBe(true);
    },
  };
}

test("the frames of a job come to a gateway whole and in order over any line, as often as it asks, and never beyond its credit", async () => {
  const pieces = fc.array(fc.string({ minLength: 1, maxLength: 40, unit: "grapheme" }), { maxLength: 30 });
  const losses = fc.infiniteStream(fc.boolean());
  await fc.assert(
    fc.asyncProperty(pieces, losses, fc.integer({ min: 10, max: 60 }), async (written, lost, window) => {
      let asked = 0;
      const loses = (): boolean => asked < 20 && Boolean(lost.next().value);
      const gateway = lossyGateway({ credit: window, window, loses });
      for (const piece of written) {
        void gateway.frames.write([textOf(piece)], 0);
        await nextTurn();
      }
      gateway.frames.end("end", end);
      for (; !gateway.ended() && asked < 4_000; asked += 1) {
        gateway.ask();
        await nextTurn();
        await nextTurn();
      }
      expect(gateway.ended()).toBe(true);
      expect(gateway.text()).toBe(written.join(""));
      expect(gateway.beyondCredit()).toBeLessThanOrEqual(0);
    }),
    { numRuns: 60 },
  );
});

/** The payloads of the frames that a gateway gets which takes all at once and gives credit at half of it. */
async function framesOf(written: readonly DataRecord[], credit: number): Promise<Uint8Array[]> {
  const broker = new MemoryBroker({ clock, log }).connect();
  const frames = new Outbox({ credit }, { uplink: new Uplink({ broker, clock }), clock, subject: "a.job" });
  const payloads: Uint8Array[] = [];
  let taken = 0;
  let limit = credit;
  broker.subscribe("a.job", ({ data }) => {
    const decoded = decodeFrame(data);
    if (decoded.outcome !== "frame" || decoded.frame.kind !== "data") return;
    payloads.push(decoded.frame.payload);
    taken += decoded.frame.payload.byteLength;
    if (taken + credit - limit < credit / 2) return;
    limit = taken + credit;
    frames.grant({ taken, limit });
  });
  for (const record of written) void frames.write([record], 0);
  for (let turn = 0; turn < 200; turn += 1) await nextTurn();
  return payloads;
}

test("credit cuts texts so that each frame ends with a record, however little there is", async () => {
  const texts = fc.array(fc.string({ minLength: 1, maxLength: 90, unit: "grapheme" }), { minLength: 1, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(texts, async (written) => {
      const payloads = await framesOf(written.map(textOf), 100);
      expect(payloads.map((payload) => textIn([payload])).join("")).toBe(written.join(""));
    }),
    { numRuns: 100 },
  );
});

test("credit of a stream lets a record of any length come", async () => {
  const long = jsonRecord("模型".repeat(30_000));
  const payloads = await framesOf([textOf("a"), long, textOf("b")], limits.streamCreditBytes);
  expect(recordsIn(Buffer.concat(payloads))).toEqual([textOf("a"), long, textOf("b")]);
  expect(payloads.length).toBeGreaterThan(5);
});

test("credit is always enough for the longest piece when the gateway's next credit is not due yet", () => {
  const pieceBytesMax = 3 * recordTextMax + 10;
  expect(limits.streamCreditBytes - limits.creditStepBytes).toBeGreaterThan(pieceBytesMax);
});

test.each([
  ["to a job that nobody knows", async () => newToken(), "key", "job_unknown"],
  ["with another key than the job's", async (id: string) => id, "other", "job_unknown"],
])("an attach %s is answered with %s", async (_, jobOf, keyId, code) => {
  const { gateway, runtime } = await agentOnBroker();
  const id = await gateway.send({ credit: 1_000 });
  await runtime.begun().text("Hello").settled();
  const asked = await jobOf(id);
  await gateway.attach(asked, { from: 1, keyId });
  expect(gateway.lastOf(asked)).toMatchObject({ kind: "fault", sequence: 0, payload: { code } });
});

test("a job without credit does not read its runtime on, is not taken for hung, and goes on when there is some", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  const id = await gateway.send({ credit: 8 });
  await gateway.say({ kind: "lease", gateway: gateway.id });
  await runtime.begun().text("Hello").settled();
  await runtime.begun().text(" there").settled();
  for (let waitedMs = 0; waitedMs < timing.noProgressMs * 2; waitedMs += timing.beatIntervalMs * 2) {
    await pass(timing.beatIntervalMs * 2);
    await gateway.say({ kind: "lease", gateway: gateway.id });
  }
  expect(gateway.kinds(id)).toEqual(["accept", "data"]);
  expect(gateway.row(id)).toEqual([id, "running", 0, expect.any(Number), 1, 8]);
  await gateway.say({ kind: "credit", job: id, taken: 8, limit: 100_000 });
  await runtime.begun().finish().settled();
  expect(gateway.kinds(id).at(-1)).toBe("end");
});

test("a job without credit that is cancelled ends at once, and with it the wait of its runtime", async () => {
  const { gateway, runtime } = await agentOnBroker();
  const id = await gateway.send({ credit: 8 });
  await runtime.begun().text("Hello").settled();
  await gateway.cancel(id);
  expect(runtime.begun().run.signal.aborted).toBe(true);
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", sequence: 2, payload: { code: "cancelled" } });
});

test("a lease that tells what clients took lets go of that and no more, and gives as much credit again", async () => {
  const { gateway, runtime, pass, timing } = await agentOnBroker();
  const credit = 200;
  const id = await gateway.send({ credit });
  await gateway.say({ kind: "lease", gateway: gateway.id });
  for (const text of ["Hello", " there", "!"]) {
    await runtime.begun().text(text).settled();
  }
  const [first, second] = gateway.frames(id).filter(({ kind }) => kind === "data");
  const taken = Buffer.byteLength(String(first?.payload));
  await gateway.say({
    kind: "lease",
    gateway: gateway.id,
    taken: [
      [newToken(), 7],
      [id, taken],
    ],
  });
  await pass(timing.beatIntervalMs);
  expect(gateway.row(id)?.at(-1)).toBe(taken + credit);
  await gateway.attach(id, { from: 2 });
  expect(gateway.lastOf(id)).toMatchObject({ kind: "data", sequence: 3 });
  expect(gateway.frames(id).filter(({ sequence }) => sequence === 2)).toEqual([second, second]);
  await gateway.attach(id, { from: 1 });
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", sequence: 0, payload: { code: "stream_gap" } });
});
