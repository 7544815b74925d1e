import * as fc from "fast-check";
import { PartSender } from "../../../services/gateway/jobs/send-parts.ts";
import { expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { FollowerOnAWire, timing } from "./follower-on-a-wire.ts";

const { partBytes, partWindowBytes } = limits;
const large = Buffer.alloc(6 * partBytes + 1000, "abcdefghij");

function sending(body: Uint8Array = large) {
  const sent: { offset: number; part: Uint8Array }[] = [];
  const sender = new PartSender({ body, timing, send: (offset, part) => void sent.push({ offset, part }) });
  const take = (): number[] => sent.splice(0).map(({ offset }) => offset / partBytes);
  return { sender, sent, take };
}

test("the parts of a large body are under way up to a window, and each acknowledgement lets more follow", () => {
  const { sender, take } = sending();
  expect(take()).toEqual([]);
  sender.start(0);
  expect(take()).toEqual([0, 1, 2, 3]);
  sender.acknowledge(partBytes, 10);
  expect(take()).toEqual([4]);
  sender.acknowledge(3 * partBytes, 20);
  expect(take()).toEqual([5, 6]);
});

test("the parts of a large body are sent again from the last acknowledged byte when nothing is acknowledged for partRepeatMs", () => {
  const { sender, take } = sending();
  sender.start(0);
  sender.acknowledge(2 * partBytes, 500);
  take();
  sender.tick(500 + timing.partRepeatMs - 1);
  expect(take()).toEqual([]);
  sender.tick(500 + timing.partRepeatMs);
  expect(take()).toEqual([2, 3, 4, 5]);
  sender.tick(500 + 2 * timing.partRepeatMs - 1);
  expect(take()).toEqual([]);
  sender.tick(500 + 2 * timing.partRepeatMs);
  expect(take()).toEqual([2, 3, 4, 5]);
});

test("the parts of a large body are not moved by acknowledgements that are old, repeated or of bytes that there are not", () => {
  const { sender, take } = sending();
  sender.start(0);
  sender.acknowledge(2 * partBytes, 10);
  take();
  for (const received of [partBytes, 2 * partBytes, large.byteLength + 1, 0]) sender.acknowledge(received, 900);
  expect(take()).toEqual([]);
  sender.tick(10 + timing.partRepeatMs);
  expect(take()[0]).toBe(2);
});

test("the parts of a large body bring the whole body over any network that loses some of them, and never more than a window is open", () => {
  const size = fc.integer({ min: 1, max: 3 * partWindowBytes });
  fc.assert(
    fc.property(size, fc.nat(), (bytes, seed) => {
      const isLost = lossesOf(seed);
      const body = Buffer.alloc(bytes, "0123456789");
      const { sender, sent } = sending(body);
      const arrived = Buffer.alloc(bytes);
      let received = 0;
      sender.start(0);
      for (let nowMs = 0; received < bytes; nowMs += timing.partRepeatMs) {
        if (nowMs > 500 * timing.partRepeatMs) throw new Error("the body does not arrive");
        for (const { offset, part } of sent.splice(0)) {
          expect(offset + part.byteLength - received).toBeLessThanOrEqual(partWindowBytes);
          expect(part.byteLength).toBeLessThanOrEqual(partBytes);
          if (isLost()) continue;
          if (offset === received) {
            arrived.set(part, offset);
            received += part.byteLength;
          }
          if (!isLost()) sender.acknowledge(received, nowMs);
        }
        sender.tick(nowMs + timing.partRepeatMs);
      }
      expect(arrived.equals(body)).toBe(true);
    }),
    { numRuns: 50 },
  );
});

/** Loses every second message on the whole, in an order of which the seed decides. */
function lossesOf(seed: number): () => boolean {
  let state = seed | 1;
  return () => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
    return (state >>> 16) % 2 === 0;
  };
}

test("a body in parts is sent when the machine says that it receives, and not when it has it already", () => {
  const wire = new FollowerOnAWire({ partsBytes: 600_000 });
  wire.pass(50);
  expect(wire.take()).toEqual(["job"]);
  wire.accept("receiving");
  expect(wire.take()).toEqual(["part 0", "part 1", "part 2"]);
  wire.accept("receiving");
  expect(wire.take()).toEqual([]);
});

test("a body in parts is sent on as it is acknowledged, and again when a part was lost", () => {
  const wire = new FollowerOnAWire({ partsBytes: 600_000 }).accept("receiving");
  wire.take();
  wire.hear("part-ack", { received: 262_144 });
  wire.beat("receiving", 0);
  wire.pass(timing.partRepeatMs);
  expect(wire.take()).toEqual(["part 1", "part 2"]);
  wire.hear("part-ack", { received: 600_000 });
  wire.beat("running", 0);
  wire.pass(timing.partRepeatMs);
  expect(wire.take()).toEqual([]);
});

test("a body in parts is not sent while the gateway is cut off", () => {
  const wire = new FollowerOnAWire({ partsBytes: 600_000 }).accept("receiving");
  wire.take();
  wire.cut();
  wire.pass(timing.partRepeatMs * 2);
  expect(wire.take()).toEqual([]);
  wire.restore();
  expect(wire.take()).toEqual(["part 0", "part 1", "part 2", "attach 1"]);
});

test("a body is kept until the first piece of the answer is there: before that another machine may be given it", () => {
  const wire = new FollowerOnAWire();
  wire.accept();
  wire.beat("prefill", 0);
  expect(wire.bodiesTaken).toBe(0);
  wire.data(1, "Hel");
  wire.data(2, "lo");
  expect(wire.bodiesTaken).toBe(1);
});

test("a body is kept also when all its parts have arrived", () => {
  const bytes = limits.partBytes * 2 + 1;
  const wire = new FollowerOnAWire({ partsBytes: bytes });
  wire.accept("receiving");
  wire.hear("part-ack", { received: bytes });
  expect(wire.bodiesTaken).toBe(0);
});
