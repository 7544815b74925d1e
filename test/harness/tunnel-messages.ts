import { NatsMessages, type NatsMessageSeen } from "./nats-messages.ts";

const headEnd = "\r\n\r\n";
const headBytesMax = 16_384;
/** Beginnings of HTTP, as which a tunnel begins. NATS begins with INFO or CONNECT. */
const httpBegin = /^(?:[A-Z]+ \/|HTTP\/)/;
const opcodeOf = { continuation: 0, binary: 2 };

/**
 * Reads the bytes of one connection of a machine in one direction, as they pass: the protocol of NATS, or a tunnel that
 * carries it in WebSocket messages. Other HTTP carries none.
 */
export class MachineMessages {
  #reader: { push(chunk: Buffer): NatsMessageSeen[] } | undefined;

  /** The messages that end in this chunk, in their order. */
  push(chunk: Buffer): NatsMessageSeen[] {
    this.#reader ??= httpBegin.test(chunk.toString("latin1", 0, 16)) ? new TunnelMessages() : new NatsMessages();
    return this.#reader.push(chunk);
  }
}

/** Reads the protocol of NATS out of an upgraded connection without compression. */
class TunnelMessages {
  readonly #messages = new NatsMessages();
  #rest: Buffer = Buffer.alloc(0);
  #stage: "head" | "tunnel" | "other HTTP" = "head";

  push(chunk: Buffer): NatsMessageSeen[] {
    if (this.#stage === "other HTTP") return [];
    const earlier = this.#rest.byteLength;
    const bytes = earlier === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    if (this.#stage === "head") {
      const end = bytes.indexOf(headEnd);
      if (end === -1 && bytes.byteLength <= headBytesMax) {
        this.#rest = Buffer.from(bytes);
        return [];
      }
      const isUpgrade = /\r\nupgrade: *websocket/i.test(bytes.toString("latin1", 0, end));
      this.#stage = isUpgrade ? "tunnel" : "other HTTP";
      if (!isUpgrade) return [];
      at = end + headEnd.length;
    }
    const seen: NatsMessageSeen[] = [];
    for (let frame = frameAt(bytes, at); frame !== undefined; frame = frameAt(bytes, at)) {
      // A message is held from the frame on in which it ends: its receiver reads whole frames only.
      const beginsAt = Math.max(0, at - earlier);
      if (frame.carries) for (const each of this.#messages.push(frame.payload)) seen.push({ ...each, beginsAt });
      at = frame.end;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
    return seen;
  }
}

interface Frame {
  readonly payload: Buffer;
  /** False for a ping, a pong and a close. */
  readonly carries: boolean;
  readonly end: number;
}

/** The WebSocket frame that begins here, or undefined if it has not come whole. Only clients mask. */
function frameAt(bytes: Buffer, at: number): Frame | undefined {
  if (bytes.byteLength < at + 2) return undefined;
  const [first = 0, second = 0] = bytes.subarray(at, at + 2);
  const isMasked = second >= 128;
  const short = second % 128;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const maskAt = at + 2 + lengthBytes;
  const begin = maskAt + (isMasked ? 4 : 0);
  if (bytes.byteLength < begin) return undefined;
  const length =
    lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
  const end = begin + length;
  if (bytes.byteLength < end) return undefined;
  const payload = Buffer.from(bytes.subarray(begin, end));
  if (isMasked)
    for (const [place, byte] of payload.entries()) payload[place] = byte ^ (bytes[maskAt + (place % 4)] ?? 0);
  const opcode = first % 16;
  return { payload, carries: opcode === opcodeOf.binary || opcode === opcodeOf.continuation, end };
}
