/** Many times what a machine may offer. A runtime that makes up more names than that has no say in who keeps his. */
const idsMax = 50_000;

/**
 * Gives every model of a machine an id that no other of its models has. The first runtime that offers an id keeps it;
 * the same id at another one is told apart by that one's name: `qwen3:8b` is also `qwen3:8b-vllm`. An id that was given
 * stays with its model for as long as the agent runs, whichever runtime comes or goes.
 */
export class UniqueIds {
  readonly #given = new Map<string, string>();
  readonly #holders = new Map<string, string>();

  idFor(model: { readonly place: string; readonly runtime: string; readonly id: string }): string {
    const holder = `${model.place}\n${model.id}`;
    const given = this.#given.get(holder);
    if (given !== undefined) return given;
    if (this.#given.size >= idsMax) this.#forgetAll();
    const id = this.#firstFree(model);
    this.#given.set(holder, id);
    this.#holders.set(id, holder);
    return id;
  }

  #forgetAll(): void {
    this.#given.clear();
    this.#holders.clear();
  }

  #firstFree({ id, runtime }: { readonly id: string; readonly runtime: string }): string {
    if (!this.#holders.has(id)) return id;
    const qualified = `${id}${hasVariant(id) ? "-" : ":"}${runtime}`;
    for (let copy = 1; ; copy += 1) {
      const candidate = copy === 1 ? qualified : `${qualified}-${copy}`;
      if (!this.#holders.has(candidate)) return candidate;
    }
  }
}

/** Whether an id has a variant already: a host's port, as in `host:5000/model`, is none. */
function hasVariant(id: string): boolean {
  return id.lastIndexOf(":") > id.lastIndexOf("/");
}
