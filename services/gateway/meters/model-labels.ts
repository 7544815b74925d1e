import { BoundedLabels, otherLabel } from "./bounded-labels.ts";

/** Models with a label of their own; the rest share one. */
export const modelLabelsMax = 100;

/** The label of requests that name no model. */
const noModel = "none";

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
