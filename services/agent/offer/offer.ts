import { createHash } from "node:crypto";
import { modelsPerMachineMax, type OfferedModel } from "#shared/model/model.ts";
import type { Runtime } from "../runtimes/runtime.ts";

/** A model of the offer, and the runtime that runs it. */
export interface Route {
  readonly runtime: Runtime;
  /** The id by which the runtime knows the model. */
  readonly ownId: string;
  readonly model: OfferedModel;
  /** Jobs of the same lane share its slots. */
  readonly lane: string;
}

/** The models that this machine offers now, and the runtimes that run them. */
export class Offer {
  readonly routes: readonly Route[];
  readonly catalogue: readonly OfferedModel[];
  readonly runtimes: readonly Runtime[];
  /** Changes whenever the catalogue does. */
  readonly digest: string;
  readonly #byId: ReadonlyMap<string, Route>;

  constructor(runtimes: readonly Runtime[], routes: readonly Route[]) {
    this.runtimes = runtimes;
    this.routes = routes.slice(0, modelsPerMachineMax);
    this.catalogue = this.routes.map(({ model }) => model);
    this.digest = createHash("sha256").update(JSON.stringify(this.catalogue)).digest("hex").slice(0, 24);
    this.#byId = new Map(this.routes.map((route) => [route.model.id, route]));
  }

  route(id: string): Route | undefined {
    return this.#byId.get(id);
  }

  /** The names of all runtimes that answer, as presence reports them. */
  get names(): string {
    return [...new Set(this.runtimes.map(({ name }) => name))].join(", ");
  }

  /** Jobs that can run at once without loading another model. */
  get slots(): number {
    return this.runtimes.reduce((sum, runtime) => sum + runtime.slots * this.#modelsAtOnce(runtime), 0);
  }

  #modelsAtOnce(runtime: Runtime): number {
    if (!runtime.slotsPerModel) return 1;
    const loaded = this.routes.filter((route) => route.runtime === runtime && route.model.loaded);
    return Math.max(1, loaded.length);
  }

  /** True if the other offer has the same runtimes, catalogue and slots. */
  equals(other: Offer): boolean {
    const same = this.runtimes.length === other.runtimes.length && this.digest === other.digest;
    return same && this.slots === other.slots && this.runtimes.every((runtime, at) => runtime === other.runtimes[at]);
  }
}
