/** The rate is that of the last seconds: of a pull that takes hours, the mean of all would tell nothing. */
const windowMs = 5_000;
const sampleMs = 250;

/** How fast bytes come. Whoever asks says what time it is. */
export class TransferRate {
  #of: string | undefined;
  #samples: { readonly atMs: number; readonly bytes: number }[] = [];

  /** Bytes a second, of what is being moved now; null until there is something to tell it from. */
  at(nowMs: number, of: string, bytes: number): number | null {
    const before = this.#samples.at(-1);
    if (this.#of !== of || (before !== undefined && bytes < before.bytes)) this.#samples = [];
    this.#of = of;
    const last = this.#samples.at(-1);
    if (last === undefined || nowMs - last.atMs >= sampleMs) this.#samples.push({ atMs: nowMs, bytes });
    while (this.#samples.length > 2 && nowMs - (this.#samples[0]?.atMs ?? nowMs) > windowMs) this.#samples.shift();
    const [first] = this.#samples;
    if (first === undefined || nowMs - first.atMs < sampleMs) return null;
    return ((bytes - first.bytes) * 1_000) / (nowMs - first.atMs);
  }
}
