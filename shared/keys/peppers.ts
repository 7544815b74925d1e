import type { KeyToken } from "./key-token.ts";
import type { KeyDigest, Pepper, PepperFingerprint } from "./pepper.ts";

/**
 * The peppers that a process has: the one that it makes digests with, and perhaps another that it accepts beside it.
 * While a pepper is being replaced, every process knows both, in whichever order.
 */
export class Peppers {
  readonly current: Pepper;
  readonly #also: Pepper | undefined;

  constructor(current: Pepper, also?: Pepper) {
    this.current = current;
    this.#also = also;
  }

  knows(fingerprint: PepperFingerprint): boolean {
    return fingerprint === this.current.fingerprint || fingerprint === this.#also?.fingerprint;
  }

  /** What a key's digest may be; the one under the current pepper comes first. */
  digestsOf(token: KeyToken): readonly [KeyDigest, ...KeyDigest[]] {
    const digest = token.digest(this.current);
    return this.#also === undefined ? [digest] : [digest, token.digest(this.#also)];
  }
}
