/**
 * Reads the commands of a NATS client from a stream of bytes that may be split anywhere. It reads the subset that
 * agents use, and nothing that two readers could understand differently: capital letters, single spaces, CRLF.
 */

/** Bytes of a control line without its line end, and of the headers of a message. NATS has the same limit. */
export const controlLineBytesMax = 4 * 1024;
const subjectCharactersMax = 1_024;

export type Command =
  | { readonly op: "connect"; readonly json: string }
  | { readonly op: "publish"; readonly message: Published }
  | { readonly op: "subscribe"; readonly pattern: string; readonly sid: string }
  | { readonly op: "unsubscribe"; readonly sid: string }
  | { readonly op: "ping" }
  | { readonly op: "pong" };

export interface Published {
  readonly subject: string;
  readonly reply: string | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly data: Uint8Array;
}

/** The client broke the protocol, or a limit of it. The message is the text of the `-ERR` that it is told. */
export class ProtocolViolation extends Error {
  override readonly name = "ProtocolViolation";
}

/** A message whose control line is read and whose bytes may still be missing. */
interface Announced extends Pick<Published, "subject" | "reply"> {
  /** Undefined for a message without headers. */
  readonly headerBytes: number | undefined;
  readonly bytes: number;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const lineEndBytes = 2;
const nothing = Buffer.alloc(0);
const token = String.raw`[!-)+-\-/-=?-~]+`;
const subjectText = new RegExp(String.raw`^${token}(?:\.${token})*$`);
const patternText = new RegExp(String.raw`^(?:(?:\*|${token})\.)*(?:\*|>|${token})$`);
const sidText = /^[0-9A-Za-z]{1,20}$/;
const sizeText = /^\d{1,9}$/;

export class ProtocolParser {
  /** Bytes of a message, its headers included. 0 as long as a client may send no message. */
  payloadBytesMax = 0;
  /** Its unread bytes are those from `#begin` to `#end`. Bytes before `#end` stay as they are: messages are views of them. */
  #buffer: Buffer = nothing;
  #begin = 0;
  #end = 0;
  /** Unread bytes that hold no line end. */
  #searchedBytes = 0;
  #announced: Announced | undefined;

  /**
   * Takes a chunk. Behind unread bytes it is copied into a buffer that doubles as it fills, so that a message in a million
   * chunks takes at most twice its size.
   */
  push(chunk: Buffer): void {
    const unread = this.#unread;
    if (unread.byteLength === 0) {
      this.#buffer = chunk;
      this.#begin = 0;
      this.#end = chunk.byteLength;
      return;
    }
    if (this.#end + chunk.byteLength > this.#buffer.byteLength) {
      this.#buffer = Buffer.allocUnsafeSlow(2 * (unread.byteLength + chunk.byteLength));
      this.#begin = 0;
      this.#end = unread.copy(this.#buffer);
    }
    this.#end += chunk.copy(this.#buffer, this.#end);
  }

  /** Returns the next whole command, or undefined until more bytes come. Throws a `ProtocolViolation`. */
  next(): Command | undefined {
    if (this.#announced === undefined) {
      const line = this.#readLine();
      const command = line === undefined ? undefined : this.#readCommand(line);
      if (command !== "message") return command;
    }
    return this.#readMessage();
  }

  #readLine(): string | undefined {
    const unread = this.#unread;
    const end = unread.indexOf(lineFeed, this.#searchedBytes);
    const bytes = end === -1 ? unread.byteLength : end - 1;
    if (bytes > controlLineBytesMax) {
      throw new ProtocolViolation(`Maximum Control Line Exceeded (${controlLineBytesMax} bytes)`);
    }
    if (end === -1) {
      this.#searchedBytes = bytes;
      return undefined;
    }
    if (unread[end - 1] !== carriageReturn) throw syntaxError("a line ends in CR LF");
    const line = unread.toString("latin1", 0, end - 1);
    this.#drop(end + 1);
    return line;
  }

  #readCommand(line: string): Command | "message" {
    const space = line.indexOf(" ");
    const op = space === -1 ? line : line.slice(0, space);
    const rest = space === -1 ? "" : line.slice(space + 1);
    const fields = rest.split(" ");
    switch (op) {
      case "PUB":
        this.#announced = this.#announcedBy(fields, undefined);
        return "message";
      case "HPUB":
        this.#announced = this.#announcedBy(fields.toSpliced(-2, 1), fields.at(-2));
        return "message";
      case "PING":
        if (space === -1) return { op: "ping" };
        break;
      case "PONG":
        if (space === -1) return { op: "pong" };
        break;
      case "SUB": {
        const [pattern = "", sid = ""] = fields;
        if (fields.length !== 2 || !sidText.test(sid)) throw syntaxError("SUB takes a subject and a number");
        if (!isText(pattern, patternText)) throw new ProtocolViolation("Invalid Subject");
        return { op: "subscribe", pattern, sid };
      }
      case "UNSUB":
        if (!sidText.test(rest)) throw syntaxError("UNSUB takes the number of a subscription");
        return { op: "unsubscribe", sid: rest };
      case "CONNECT":
        return { op: "connect", json: rest };
    }
    throw new ProtocolViolation("Unknown Protocol Operation");
  }

  #announcedBy(fields: readonly string[], headerSize: string | undefined): Announced {
    const [subject = "", second, third] = fields;
    const [reply, size = ""] = third === undefined ? [undefined, second] : [second, third];
    const isSized = sizeText.test(size) && (headerSize === undefined || sizeText.test(headerSize));
    if (fields.length > 3 || !isSized) throw syntaxError("a message has a subject, perhaps a reply, and its size");
    if (!isText(subject, subjectText) || (reply !== undefined && !isText(reply, subjectText))) {
      throw new ProtocolViolation("Invalid Publish Subject");
    }
    const bytes = Number(size);
    const headerBytes = headerSize === undefined ? undefined : Number(headerSize);
    if (bytes > this.payloadBytesMax) {
      throw new ProtocolViolation(`Maximum Payload Violation (${this.payloadBytesMax} bytes)`);
    }
    if (headerBytes !== undefined && (headerBytes > bytes || headerBytes > controlLineBytesMax)) {
      throw new ProtocolViolation(`Maximum Headers Exceeded (${controlLineBytesMax} bytes)`);
    }
    return { subject, reply, headerBytes, bytes };
  }

  #readMessage(): Command | undefined {
    const announced = this.#announced;
    if (announced === undefined) return undefined;
    const { subject, reply, bytes, headerBytes } = announced;
    if (this.#end - this.#begin < bytes + lineEndBytes) return undefined;
    const unread = this.#unread;
    if (unread[bytes] !== carriageReturn || unread[bytes + 1] !== lineFeed) {
      throw syntaxError("a message ends in CR LF");
    }
    const headers = headerBytes === undefined ? undefined : readHeaders(unread.toString("utf8", 0, headerBytes));
    const data = unread.subarray(headerBytes ?? 0, bytes);
    this.#drop(bytes + lineEndBytes);
    this.#announced = undefined;
    return { op: "publish", message: { subject, reply, headers, data } };
  }

  get #unread(): Buffer {
    return this.#buffer.subarray(this.#begin, this.#end);
  }

  #drop(bytes: number): void {
    this.#begin += bytes;
    this.#searchedBytes = 0;
    if (this.#begin === this.#end) this.#buffer = nothing;
  }
}

function isText(text: string, form: RegExp): boolean {
  return text.length <= subjectCharactersMax && form.test(text);
}

function readHeaders(block: string): Readonly<Record<string, string>> {
  const [version, ...lines] = block.split("\r\n");
  if (version !== "NATS/1.0" || lines.pop() !== "" || lines.pop() !== "") {
    throw syntaxError("headers begin with NATS/1.0 and end with an empty line");
  }
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      if (colon < 1) throw syntaxError("a header has a name and a colon");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
}

function syntaxError(rule: string): ProtocolViolation {
  return new ProtocolViolation(`Parser Error: ${rule}`);
}
