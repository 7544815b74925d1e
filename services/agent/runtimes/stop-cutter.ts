/**
 * Cuts a text that comes in pieces exactly before the first stop string in it, however the pieces are split. A stop
 * string may span pieces. The end of the text so far is held back while it could be the beginning of a stop string.
 */
export class StopCutter {
  readonly #stops: readonly string[];
  #held = "";
  #stopped = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** True if a stop string was found. No text comes out after it. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Takes the next piece and returns the text that now certainly belongs to the answer. */
  push(piece: string): string {
    if (this.#stops.length === 0) return piece;
    if (this.#stopped) return "";
    const text = this.#held + piece;
    const cut = this.#firstStop(text);
    if (cut !== undefined) {
      this.#stopped = true;
      this.#held = "";
      return text.slice(0, cut);
    }
    const heldFrom = this.#possibleStop(text);
    this.#held = text.slice(heldFrom);
    return text.slice(0, heldFrom);
  }

  /** Ends the text and returns the part that was held back. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  /** Returns the start of the stop string that is complete first, as if the text came character by character. */
  #firstStop(text: string): number | undefined {
    const found = this.#stops
      .map((stop) => ({ from: text.indexOf(stop), characters: stop.length }))
      .filter(({ from }) => from >= 0)
      .sort((a, b) => a.from + a.characters - (b.from + b.characters) || a.from - b.from);
    return found[0]?.from;
  }

  /** Returns the start of the longest end of the text that is also the beginning of a stop string. */
  #possibleStop(text: string): number {
    const longest = Math.max(...this.#stops.map((stop) => stop.length)) - 1;
    for (let from = Math.max(0, text.length - longest); from < text.length; from++) {
      const end = text.slice(from);
      if (this.#stops.some((stop) => stop.startsWith(end))) return from;
    }
    return text.length;
  }
}
