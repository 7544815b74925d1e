interface Kept {
  readonly sequence: number;
  readonly frame: Uint8Array;
  /** Where its bytes end in the answer. The terminal frame has none, and is never taken. */
  readonly endOffset: number;
}

/**
 * The numbered frames of one job that its gateway may still ask for again: all that its client has not taken. How much
 * that can be is bounded by the credit that the gateway gives.
 */
export class ReplayBuffer {
  #kept: Kept[] = [];
  #first = 0;

  keep(frame: Kept): void {
    this.#kept.push(frame);
  }

  /** The client has the answer up to this offset, and nobody will ask for that again. */
  taken(offset: number): void {
    let first = this.#first;
    for (let frame = this.#kept[first]; frame !== undefined && frame.endOffset <= offset; frame = this.#kept[first]) {
      first += 1;
    }
    this.#first = first;
    if (first < 64 || first * 2 < this.#kept.length) return;
    this.#kept = this.#kept.slice(first);
    this.#first = 0;
  }

  /** All frames from this number on, or nothing when some of them are not kept any more. */
  from(sequence: number): readonly Uint8Array[] | undefined {
    const oldest = this.#kept[this.#first];
    if (oldest === undefined || sequence < oldest.sequence) return undefined;
    return this.#kept.slice(this.#first + sequence - oldest.sequence).map(({ frame }) => frame);
  }
}
