import { randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { MachineMessages } from "../../harness/tunnel-messages.ts";

/** A WebSocket frame as `ws` writes it. */
function frame(payload: Buffer, { masked, opcode = 2 }: { masked: boolean; opcode?: number }): Buffer {
  const { byteLength: length } = payload;
  const short = length < 126 ? length : length < 65_536 ? 126 : 127;
  const head = Buffer.alloc(2 + (short === 126 ? 2 : short === 127 ? 8 : 0));
  head[0] = 128 + opcode;
  head[1] = short + (masked ? 128 : 0);
  if (short === 126) head.writeUInt16BE(length, 2);
  if (short === 127) head.writeBigUInt64BE(BigInt(length), 2);
  if (!masked) return Buffer.concat([head, payload]);
  const mask = randomBytes(4);
  return Buffer.concat([head, mask, Buffer.from(payload.map((byte, place) => byte ^ (mask[place % 4] ?? 0)))]);
}

function message(subject: string, bytes: number): Buffer {
  return Buffer.from(`PUB ${subject} ${bytes}\r\n${"x".repeat(bytes)}\r\n`);
}

/** The first line of HTTP comes whole: a reader knows by it what it reads. */
const firstLineBytes = 24;

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const rest = bytes.byteLength - firstLineBytes;
  const places = [...cuts.map((cut) => firstLineBytes + (cut % rest)), bytes.byteLength].toSorted(
    (one, other) => one - other,
  );
  return places.map((place, index) => bytes.subarray(places[index - 1] ?? 0, place));
}

const head = "GET /agent/v1 HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n";

test.each([true, false])("messages come out of a tunnel whole, wherever its bytes are cut, masked: %s", (masked) => {
  const frames = [
    frame(Buffer.concat([message("a", 3), message("b", 0)]), { masked }),
    frame(Buffer.from("PUB not.this 3\r\nabc\r\n"), { masked, opcode: 9 }),
    frame(message("c", 300), { masked }),
    frame(message("d", 70_000), { masked }),
  ];
  const bytes = Buffer.concat([Buffer.from(head), ...frames]);
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 12 }), (cuts) => {
      const messages = new MachineMessages();
      let passed = 0;
      const seen = split(bytes, cuts).flatMap((chunk) => {
        const came = messages.push(chunk).map((each) => ({ ...each, from: passed + each.beginsAt, chunk }));
        for (const { beginsAt } of came) expect(beginsAt).toBeLessThanOrEqual(chunk.byteLength);
        passed += chunk.byteLength;
        return came;
      });
      expect(seen.map(({ subject, payload }) => [subject, payload.byteLength])).toEqual([
        ["a", 3],
        ["b", 0],
        ["c", 300],
        ["d", 70_000],
      ]);
      // What is held from there on reaches the receiver as no whole frame.
      const last = bytes.byteLength - (frames[3]?.byteLength ?? 0);
      expect(seen[3]?.from).toBeGreaterThanOrEqual(last);
      expect(seen[0]?.from).toBeLessThan(head.length + (frames[0]?.byteLength ?? 0));
    }),
    { numRuns: 50 },
  );
});

test("a request that is no tunnel, such as one to pair, carries no message", () => {
  const messages = new MachineMessages();
  const body = "PUB a 1\r\nx\r\n";
  const request = `POST /agent/v1/pair HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  expect(messages.push(Buffer.from(request))).toEqual([]);
});

test("the protocol of NATS itself is read as before", () => {
  const messages = new MachineMessages();
  expect(messages.push(Buffer.concat([Buffer.from('INFO {"a":1}\r\n'), message("a", 2)]))).toMatchObject([
    { subject: "a" },
  ]);
});
