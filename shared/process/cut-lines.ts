const newline = 0x0a;

/**
 * Splits a byte stream into lines, which end in a line feed. It splits the bytes and decodes each line, so that a
 * character across two pieces stays whole. A line above the limit throws the error of `tooLong`, and no more bytes than
 * the limit are ever held.
 */
export class LineCutter {
  readonly #lineBytesMax: number;
  readonly #tooLong: () => Error;
  #begun: Uint8Array[] = [];
  #begunBytes = 0;

  constructor(lineBytesMax: number, tooLong: () => Error) {
    this.#lineBytesMax = lineBytesMax;
    this.#tooLong = tooLong;
  }

  /** Passes on each line that this piece completes, also the lines before a line above the limit. */
  push(piece: Uint8Array, onLine: (line: string) => void): void {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let from = 0;
    for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, from)) {
      this.#assertRoom(at - from);
      const line = this.#begunBytes > 0 ? this.#ended(bytes.subarray(from, at)) : bytes.toString("utf8", from, at);
      from = at + 1;
      onLine(line);
    }
    const rest = bytes.subarray(from);
    if (rest.byteLength === 0) return;
    this.#assertRoom(rest.byteLength);
    this.#begun.push(rest);
    this.#begunBytes += rest.byteLength;
  }

  /** Passes on the last line, if it lacks its line feed. */
  end(onLine: (line: string) => void): void {
    if (this.#begunBytes > 0) onLine(this.#ended(new Uint8Array()));
  }

  /** Returns the lines that this piece completes, without empty ones. */
  take(piece: Uint8Array): string[] {
    const lines: string[] = [];
    this.push(piece, (line) => {
      if (line.trim() !== "") lines.push(line);
    });
    return lines;
  }

  #assertRoom(bytes: number): void {
    if (this.#begunBytes + bytes > this.#lineBytesMax) throw this.#tooLong();
  }

  #ended(end: Uint8Array): string {
    const line = Buffer.concat([...this.#begun, end]).toString();
    this.#begun = [];
    this.#begunBytes = 0;
    return line;
  }
}
