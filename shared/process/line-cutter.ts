const newline = 0x0a;

/**
 * Splits a byte stream into lines. It splits the bytes and decodes each line, so that a character across two pieces
 * stays whole. A line above the limit throws the error of `tooLong`.
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

  /** True if a line has begun and its end has not arrived. */
  get hasBegun(): boolean {
    return this.#begunBytes > 0;
  }

  /** Returns the lines that this piece completes, without empty ones. */
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
