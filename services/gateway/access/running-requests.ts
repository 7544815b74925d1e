import type { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";

interface Running {
  readonly leaving: AbortController;
  place: number;
}

/** The requests under way at this gateway by their keys, from when a key was proved, so that taking it back ends them. */
export class RunningRequests {
  /** In lists: a `Set` leaves garbage behind that lives long, and takes along what was in it. */
  readonly #byKey = new Map<KeyId, Running[]>();

  get keyIds(): Iterable<KeyId> {
    return this.#byKey.keys();
  }

  has(id: KeyId): boolean {
    return this.#byKey.has(id);
  }

  /** To be called when the request has ended, whichever way. */
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
