import type { KeyToken } from "./key-token.ts";
import type { KeyDigest, Pepper, PepperFingerprint } from "./pepper.ts";

/**
 * The peppers of a process: the one that makes digests, and optionally another one that is also accepted. While a
 * pepper is being replaced, every process has both, in either order.
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

  /** Returns the possible digests of a key. The digest under the current pepper comes first. */
  digestsOf(token: KeyToken): readonly [KeyDigest, ...KeyDigest[]] {
    const digest = token.digest(this.current);
    return this.#also === undefined ? [digest] : [digest, token.digest(this.#also)];
  }
}
