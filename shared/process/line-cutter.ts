const newline = 0x0a;

/**
 * Cuts a text that comes in pieces into its lines. It is cut as bytes and decoded line by line, so that a character
 * which spans two pieces stays whole. A line that grows past the limit is the error that its owner makes of it.
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

  /** Whether there is a line whose end has not come. */
  get hasBegun(): boolean {
    return this.#begunBytes > 0;
  }

  /** The lines that this piece completes, without those that are empty. */
  take(piece: Uint8Array): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let at = piece.indexOf(newline); at !== -1; at = piece.indexOf(newline, from)) {
      this.#begin(piece.subarray(from, at));
      lines.push(Buffer.concat(this.#begun).toString());
      this.#begun = [];
      this.#begunBytes = 0;
      from = at + 1;
    }
    if (from < piece.byteLength) this.#begin(piece.subarray(from));
    return lines.filter((line) => line.trim() !== "");
  }

  #begin(bytes: Uint8Array): void {
    this.#begun.push(bytes);
    this.#begunBytes += bytes.byteLength;
    if (this.#begunBytes > this.#lineBytesMax) throw this.#tooLong();
  }
}
