/**
 * Cuts a text that comes in pieces exactly before the first stop string in it, the same however the pieces are cut. A
 * stop string may span pieces, so the end of what has come is held back for as long as it could be the beginning of one.
 */
export class StopCutter {
  readonly #stops: readonly string[];
  #held = "";
  #stopped = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** Whether a stop string was met. Nothing comes out after that. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Takes the next piece and gives what is now certain to belong to the text. */
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

  /** The text is over: gives what was held back. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  /** Where the stop string begins that is complete first, as if the text came letter by letter. */
  #firstStop(text: string): number | undefined {
    const found = this.#stops
      .map((stop) => ({ from: text.indexOf(stop), characters: stop.length }))
      .filter(({ from }) => from >= 0)
      .sort((a, b) => a.from + a.characters - (b.from + b.characters) || a.from - b.from);
    return found[0]?.from;
  }

  /** Where the longest end of the text begins that is also the beginning of a stop string. */
  #possibleStop(text: string): number {
    const longest = Math.max(...this.#stops.map((stop) => stop.length)) - 1;
    for (let from = Math.max(0, text.length - longest); from < text.length; from++) {
      const end = text.slice(from);
      if (this.#stops.some((stop) => stop.startsWith(end))) return from;
    }
    return text.length;
  }
}
