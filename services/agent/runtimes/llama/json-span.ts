/** Returns the end of the JSON object or array that begins at `start`, or undefined while it has not ended. */
export function jsonSpan(text: string, start: number): number | undefined {
  const scan = new JsonScan();
  const length = scan.push(text.slice(start));
  return length === undefined ? undefined : start + length;
}

/** Finds the end of a JSON object or array in a text that arrives in pieces. Reads each character once. */
export class JsonScan {
  #depth = 0;
  #inString = false;
  #escaped = false;

  /** Takes the next piece. Returns how many of its characters belong to the value, if the value ends in this piece. */
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
