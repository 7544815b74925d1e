import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { decodeFrame, type Frame } from "#shared/protocol/frame.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { FrameEmitter } from "../../../services/agent/jobs/emit-frames.ts";
import { Uplink } from "../../../services/agent/jobs/uplink.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";

const log = createLog({ level: "silent", name: "test" });
const end = { finishReason: "stop", usage: null, timings: { queuedMs: 0, firstTokenMs: null, totalMs: 1 } } as const;

/** A gateway on a line that loses what the test wants lost, and which asks for what it misses. */
function lossyGateway(options: { readonly credit: number; readonly window: number; readonly loses: () => boolean }) {
  const { credit, window, loses } = options;
  const broker = new MemoryBroker({ clock, log }).connect();
  const frames = new FrameEmitter({ uplink: new Uplink({ broker, clock }), clock, subject: "a.job", credit });
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
    text: () => Buffer.concat(received.filter(({ kind }) => kind === "data").map(({ payload }) => payload)).toString(),
    ask: (): void => {
      limit = bytes + window;
      frames.grant({ taken: bytes, limit });
      expect(frames.attach({ subject: "a.job", from: received.length + 1, credit: limit })).toBe(true);
    },
  };
}

describe("the frames of a job", () => {
  test("come to a gateway whole and in order over any line, as often as it asks, and never beyond its credit", async () => {
    const pieces = fc.array(fc.string({ minLength: 1, maxLength: 40 }), { maxLength: 30 });
    const losses = fc.infiniteStream(fc.boolean());
    await fc.assert(
      fc.asyncProperty(pieces, losses, fc.integer({ min: 1, max: 60 }), async (written, lost, window) => {
        let asked = 0;
        const loses = (): boolean => asked < 20 && Boolean(lost.next().value);
        const gateway = lossyGateway({ credit: window, window, loses });
        for (const piece of written) {
          void gateway.frames.write(Buffer.from(piece), 0);
          await nextTurn();
        }
        gateway.frames.end(end);
        for (; !gateway.ended() && asked < 4_000; asked += 1) {
          gateway.ask();
          await nextTurn();
          await nextTurn();
        }
        expect(gateway.ended()).toBe(true);
        expect(gateway.text()).toBe(Buffer.concat(written.map((piece) => Buffer.from(piece))).toString());
        expect(gateway.beyondCredit()).toBeLessThanOrEqual(0);
      }),
      { numRuns: 60 },
    );
  });

  test("of which the client has some cannot be asked for from there again", async () => {
    const { frames } = lossyGateway({ credit: 100, window: 100, loses: () => false });
    void frames.write(Buffer.from("Hello"), 1);
    frames.end(end);
    await nextTurn();
    frames.grant({ taken: 5, limit: 105 });
    expect(frames.attach({ subject: "a.job", from: 1, credit: 105 })).toBe(false);
    expect(frames.attach({ subject: "a.job", from: 2, credit: 105 })).toBe(true);
  });

  test("are held back with the job's end until there is credit, and whoever writes is told to wait", async () => {
    const { frames, text, ended, ask } = lossyGateway({ credit: 4, window: 4, loses: () => false });
    const room = frames.write(Buffer.from("Hello there"), 1);
    frames.end(end);
    await nextTurn();
    await nextTurn();
    expect([text(), ended(), frames.heldBack, frames.endedAtMs]).toEqual(["Hell", false, true, undefined]);
    let free = false;
    void room?.then(() => (free = true));
    ask();
    for (let turn = 0; turn < 2; turn += 1) await nextTurn();
    expect(free).toBe(false);
    ask();
    for (let turn = 0; turn < 2; turn += 1) await nextTurn();
    expect([text(), ended(), free]).toEqual(["Hello there", true, true]);
  });
});

describe("a frame of a stream of events", () => {
  /** The payloads of the frames that a gateway gets which takes all at once and gives credit at half of it. */
  async function framesOf(written: readonly string[], credit: number): Promise<string[]> {
    const broker = new MemoryBroker({ clock, log }).connect();
    const frames = new FrameEmitter({ uplink: new Uplink({ broker, clock }), clock, subject: "a.job", credit });
    const payloads: string[] = [];
    let taken = 0;
    let limit = credit;
    broker.subscribe("a.job", ({ data }) => {
      const decoded = decodeFrame(data);
      if (decoded.outcome !== "frame" || decoded.frame.kind !== "data") return;
      payloads.push(Buffer.from(decoded.frame.payload).toString());
      taken += decoded.frame.payload.byteLength;
      if (taken + credit - limit < credit / 2) return;
      limit = taken + credit;
      frames.grant({ taken, limit });
    });
    for (const piece of written) void frames.write(Buffer.from(piece), 0);
    for (let turn = 0; turn < 200; turn += 1) await nextTurn();
    return payloads;
  }

  test("ends where an event does, however little credit there is, and all of them come", async () => {
    const events = fc.array(fc.integer({ min: 1, max: 46 }), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(events, fc.integer({ min: 1, max: 5 }), async (sizes, together) => {
        const written = sizes.map((size, place) => `${place % 10}`.repeat(size) + "\n\n");
        const pieces = written.flatMap((_, place) =>
          place % together === 0 ? [written.slice(place, place + together).join("")] : [],
        );
        const payloads = await framesOf(pieces, 100);
        expect(payloads.join("")).toBe(written.join(""));
        for (const payload of payloads) expect(payload.endsWith("\n\n")).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  test("is cut within an event only where that is larger than half the credit", async () => {
    const large = `${"x".repeat(250)}\n\n`;
    const payloads = await framesOf(["a\n\n", large, "b\n\n"], 100);
    expect(payloads.join("")).toBe(`a\n\n${large}b\n\n`);
    expect(payloads.length).toBeGreaterThan(3);
  });
});

describe("an attach", () => {
  test("brings the frames of a job again, to the gateway that it came from", async () => {
    const { gateway, connectGateway, runtime, settle } = await agentOnBroker();
    const id = await gateway.send({ credit: 1_000 });
    runtime.begun().text("Hello");
    await settle();
    const other = connectGateway();
    await other.attach(id, { from: 1 });
    runtime.begun().finish();
    await settle();
    expect(other.frames(id).map(({ kind, sequence }) => [kind, sequence])).toEqual([
      ["data", 1],
      ["data", 2],
      ["end", 3],
    ]);
    expect(gateway.kinds(id)).toEqual(["accept", "data"]);
  });

  test.each([
    ["to a job that nobody knows", async () => newToken(), "key", "job_unknown"],
    ["with another key than the job's", async (id: string) => id, "other", "job_unknown"],
  ])("%s is answered with %s", async (_, jobOf, keyId, code) => {
    const { gateway, runtime, settle } = await agentOnBroker();
    const id = await gateway.send({ credit: 1_000 });
    runtime.begun().text("Hello");
    await settle();
    const asked = await jobOf(id);
    await gateway.attach(asked, { from: 1, keyId });
    expect(gateway.lastOf(asked)).toMatchObject({ kind: "fault", sequence: 0, payload: { code } });
  });

  test("from below what the client has is answered with stream_gap", async () => {
    const { gateway, runtime, settle } = await agentOnBroker();
    const id = await gateway.send({ credit: 1_000 });
    runtime.begun().text("Hello");
    await settle();
    runtime.begun().text(" there");
    await settle();
    await gateway.say({ kind: "credit", job: id, taken: 1_000, limit: 2_000 });
    await gateway.attach(id, { from: 1 });
    expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", sequence: 0, payload: { code: "stream_gap" } });
  });
});

describe("a job without credit", () => {
  test("does not read its runtime on, is not taken for hung, and goes on when there is some", async () => {
    const { gateway, runtime, settle, pass, timing } = await agentOnBroker();
    const id = await gateway.send({ credit: 1 });
    await gateway.say({ kind: "lease", gateway: gateway.id });
    runtime.begun().text("Hello");
    await settle();
    runtime.begun().text(" there");
    await settle();
    for (let waitedMs = 0; waitedMs < timing.noProgressMs * 2; waitedMs += timing.beatIntervalMs * 2) {
      await pass(timing.beatIntervalMs * 2);
      await gateway.say({ kind: "lease", gateway: gateway.id });
    }
    expect(gateway.kinds(id)).toEqual(["accept", "data"]);
    expect(gateway.row(id)).toEqual([id, "running", 0, expect.any(Number), 1, 1]);
    await gateway.say({ kind: "credit", job: id, taken: 1, limit: 100_000 });
    runtime.begun().finish();
    await settle();
    expect(gateway.kinds(id).at(-1)).toBe("end");
  });

  test("that is cancelled ends at once, and with it the wait of its runtime", async () => {
    const { gateway, runtime, settle } = await agentOnBroker();
    const id = await gateway.send({ credit: 1 });
    runtime.begun().text("Hello");
    await settle();
    await gateway.cancel(id);
    expect(runtime.begun().run.signal.aborted).toBe(true);
    expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", sequence: 2, payload: { code: "cancelled" } });
  });
});

describe("a lease that tells what clients took", () => {
  test("lets go of that and no more, and gives as much credit again", async () => {
    const { gateway, runtime, settle, pass, timing } = await agentOnBroker();
    const credit = 200;
    const id = await gateway.send({ credit });
    await gateway.say({ kind: "lease", gateway: gateway.id });
    for (const text of ["Hello", " there", "!"]) {
      runtime.begun().text(text);
      await settle();
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
});
