const field = "data:";
const done = "[DONE]";
/** A line that clients read as the end of a stream, in Latin-1. Some clients drop a byte order mark before it. */
const doneLine = /(?:^|[\r\n])(?:\xef\xbb\xbf)?data:[ \t]*\[DONE\]/;
const byteOrderMark = "\xef\xbb\xbf";
const newline = 0x0a;
const carriageReturn = 0x0d;

/** Placeholder for the start of a line that cannot become `data: [DONE]`. */
const otherLine = "x";

/**
 * Finds a line `data: [DONE]` in an answer, however its bytes are cut into frames. Clients take that line for success, so
 * only the gateway may send it. The same text inside a JSON string is content: no line of JSON begins with `data:`.
 */
export class EarlyDone {
  /**
   * The start of the last line in Latin-1, while that line may become `data: [DONE]`. Its blanks are reduced to one.
   */
  #begun = "";

  /**
   * Takes the next bytes of the answer. True if they complete such a line. A frame that ends in a newline costs one
   * native search.
   */
  isIn(bytes: Uint8Array): boolean {
    const frame = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const lines = this.#begun === "" ? frame : Buffer.concat([Buffer.from(this.#begun, "latin1"), frame]);
    if (lines.includes(done) && doneLine.test(lines.toString("latin1"))) return true;
    this.#begun = lines.at(-1) === newline ? "" : lineBegun(lines);
    return false;
  }
}

function lineBegun(lines: Buffer): string {
  const begin = Math.max(lines.lastIndexOf(newline), lines.lastIndexOf(carriageReturn)) + 1;
  const line = lines.toString("latin1", begin);
  if (byteOrderMark.startsWith(line)) return line;
  const plain = line.replace(/^\xef\xbb\xbf/, "").replace(/^data:[ \t]+/, `${field} `);
  const mayBecomeDone = `${field} ${done}`.startsWith(plain) || `${field}${done}`.startsWith(plain);
  return mayBecomeDone ? plain : otherLine;
}
