/**
 * Bounds the remembered ids, many times the models that a machine may offer. A runtime that invents more names makes
 * all ids be assigned anew.
 */
const idsMax = 50_000;

/**
 * Gives each model of a machine a unique id. The first runtime that offers an id keeps it. The same id at another
 * runtime gets that runtime's name as a suffix: `qwen3:8b` is also `qwen3:8b-vllm`. An id stays with its model as long
 * as the agent runs, whichever runtime comes or goes.
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

/** True if an id has a variant. The port of a host, as in `host:5000/model`, is none. */
function hasVariant(id: string): boolean {
  return id.lastIndexOf(":") > id.lastIndexOf("/");
}
