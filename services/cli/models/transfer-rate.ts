/**
 * The rate is measured over this window. The mean of a whole pull, which can take hours, would not show the present
 * rate.
 */
const windowMs = 5_000;
const sampleMs = 250;

/** Measures the transfer rate. The caller passes the time. */
export class TransferRate {
  #of: string | undefined;
  #samples: { readonly atMs: number; readonly bytes: number }[] = [];

  /** Returns the current rate in bytes a second, for the transfer `of`. Null until there are enough samples. */
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
