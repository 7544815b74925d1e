/** Machines with a label of their own; the rest share one. */
export const machineLabelsMax = 200;
/** Models with a label of their own; the rest share one. */
export const modelLabelsMax = 100;

/** The shared label of all values that came after the limit was reached. */
const otherLabel = "other";
/** The label of requests that name no model. */
const noModel = "none";

/**
 * Bounds the values of a label. Each value is kept for good, since a counter must not go back. Above the limit, new
 * values share `otherLabel`. A client that invents names cannot fill the memory of systems that store metrics.
 */
export class BoundedLabels {
  readonly #max: number;
  readonly #values = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  has(value: string): boolean {
    return this.#values.has(value);
  }

  of(value: string): string {
    if (this.#values.has(value)) return value;
    if (this.#values.size >= this.#max) return otherLabel;
    this.#values.add(value);
    return value;
  }
}

/**
 * Chooses the model label of a request. Only a name that a machine offers becomes a label, because clients may ask for
 * any name.
 */
export class ModelLabels {
  readonly #labels = new BoundedLabels(modelLabelsMax);
  readonly #offered: (model: string) => string | undefined;

  /** `offered` returns the id by which a present machine offers the model that a client named, if one does. */
  constructor(offered: (model: string) => string | undefined) {
    this.#offered = offered;
  }

  /** Returns the label of a model by its id on a machine. */
  ofOffered(model: string): string {
    return this.#labels.of(model);
  }

  /** Returns the label of a model by the name that a client used. */
  ofAsked(model: string | undefined): string {
    if (model === undefined) return noModel;
    if (this.#labels.has(model)) return model;
    const offered = this.#offered(model);
    return offered === undefined ? otherLabel : this.#labels.of(offered);
  }
}
