import type { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";

/** The requests under way at this gateway by their keys, from when a key was proved, so that taking it back ends them. */
export class RunningRequests {
  readonly #byKey = new Map<KeyId, Set<AbortController>>();

  get keyIds(): Iterable<KeyId> {
    return this.#byKey.keys();
  }

  has(id: KeyId): boolean {
    return this.#byKey.has(id);
  }

  /** To be called when the request has ended, whichever way. */
  begin(id: KeyId, leaving: AbortController): () => void {
    this.#byKey.getOrInsertComputed(id, () => new Set()).add(leaving);
    return () => {
      const others = this.#byKey.get(id);
      others?.delete(leaving);
      if (others?.size === 0) this.#byKey.delete(id);
    };
  }

  cut(id: KeyId, fault: Fault): void {
    for (const leaving of this.#byKey.get(id) ?? []) leaving.abort(fault);
  }
}
