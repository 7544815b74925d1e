/** Where the JSON object or array ends that begins at `start` of a text; undefined while it has not ended. */
export function jsonSpan(text: string, start: number): number | undefined {
  const scan = new JsonScan();
  const length = scan.push(text.slice(start));
  return length === undefined ? undefined : start + length;
}

/** Looks for the end of a JSON object or array in a text that comes in pieces, reading each character once. */
export class JsonScan {
  #depth = 0;
  #inString = false;
  #escaped = false;

  /** Takes the next piece, and gives how much of it belongs to the value when that ends in it. */
  push(piece: string): number | undefined {
    for (let at = 0; at < piece.length; at++) {
      if (this.#ends(piece.charAt(at))) return at + 1;
    }
    return undefined;
  }

  #ends(character: string): boolean {
    if (this.#inString) {
      const closes = character === '"' && !this.#escaped;
      this.#escaped = character === "\\" && !this.#escaped;
      this.#inString = !closes;
      return false;
    }
    if (character === '"') this.#inString = true;
    if (character === "{" || character === "[") this.#depth += 1;
    if (character === "}" || character === "]") this.#depth -= 1;
    return this.#depth === 0 && (character === "}" || character === "]");
  }
}
