/** One message of the NATS protocol that carries something. */
export interface NatsMessageSeen {
  readonly subject: string;
  readonly reply: string | undefined;
  readonly headers: string;
  readonly payload: Buffer;
  /** Where it begins in the chunk that it ended in; 0 for one that began in an earlier chunk. */
  readonly beginsAt: number;
}

interface Announced {
  readonly subject: string;
  readonly reply: string | undefined;
  readonly headerBytes: number;
  readonly totalBytes: number;
  readonly beginsAt: number;
}

const lineBytesMax = 8_192;

/**
 * Reads the bytes of one connection of the NATS protocol in one direction, as they pass. Whatever is cut into chunks
 * anywhere is put together; verbs that carry no message are skipped.
 */
export class NatsMessages {
  #rest: Buffer = Buffer.alloc(0);
  #announced: Announced | undefined;

  /** The messages that end in this chunk, in their order. */
  push(chunk: Buffer): NatsMessageSeen[] {
    const seen: NatsMessageSeen[] = [];
    const earlier = this.#rest.byteLength;
    const bytes = earlier === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    for (;;) {
      if (this.#announced === undefined) {
        const end = bytes.indexOf("\r\n", at);
        if (end === -1) break;
        this.#announced = announcedBy(bytes.toString("latin1", at, end), Math.max(0, at - earlier));
        at = end + 2;
        continue;
      }
      const { headerBytes, totalBytes, ...about } = this.#announced;
      if (bytes.byteLength < at + totalBytes + 2) break;
      const headers = bytes.toString("latin1", at, at + headerBytes);
      const payload = bytes.subarray(at + headerBytes, at + totalBytes);
      seen.push({ ...about, headers, payload: Buffer.from(payload) });
      at += totalBytes + 2;
      this.#announced = undefined;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
    if (this.#announced === undefined && this.#rest.byteLength > lineBytesMax) {
      throw new Error("what passes here is not the NATS protocol");
    }
    if (this.#announced !== undefined) this.#announced = { ...this.#announced, beginsAt: 0 };
    return seen;
  }
}

/** `PUB subject [reply] n`, `HPUB subject [reply] h n`, `MSG subject sid [reply] n`, `HMSG subject sid [reply] h n`. */
function announcedBy(line: string, beginsAt: number): Announced | undefined {
  const [verb = "", subject = "", ...rest] = line.split(/\s+/);
  const kind = verb.toUpperCase();
  if (!["PUB", "HPUB", "MSG", "HMSG"].includes(kind)) return undefined;
  if (kind.endsWith("MSG")) rest.shift();
  const totalBytes = Number(rest.pop());
  const headerBytes = kind.startsWith("H") ? Number(rest.pop()) : 0;
  return { subject, reply: rest[0], headerBytes, totalBytes, beginsAt };
}
