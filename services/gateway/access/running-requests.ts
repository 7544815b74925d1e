import type { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";

interface Running {
  readonly leaving: AbortController;
  place: number;
}

/** The running requests of this gateway by key, from the proof of the key on, so that revoking the key ends them. */
export class RunningRequests {
  /** Arrays and not a `Set`: a `Set` leaves long-lived garbage behind, which keeps its former members in memory. */
  readonly #byKey = new Map<KeyId, Running[]>();

  get keyIds(): Iterable<KeyId> {
    return this.#byKey.keys();
  }

  has(id: KeyId): boolean {
    return this.#byKey.has(id);
  }

  /** Adds a running request. Call the returned function when the request has ended, in whatever way. */
  begin(id: KeyId, leaving: AbortController): () => void {
    const all = this.#byKey.getOrInsertComputed(id, () => []);
    const running: Running = { leaving, place: all.length };
    all.push(running);
    return () => {
      if (all[running.place] !== running) return;
      const last = all.pop();
      if (last !== undefined && last !== running) {
        all[running.place] = last;
        last.place = running.place;
      }
      if (all.length === 0) this.#byKey.delete(id);
    };
  }

  cut(id: KeyId, fault: Fault): void {
    for (const { leaving } of this.#byKey.get(id)?.slice() ?? []) leaving.abort(fault);
  }
}
