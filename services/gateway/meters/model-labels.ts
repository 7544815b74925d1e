import { BoundedLabels, otherLabel } from "./bounded-labels.ts";

/** So many models have a label of their own; the rest share one. */
export const modelLabelsMax = 100;

/** What requests are called that name no model. */
const noModel = "none";

/** By which model a request is counted. Only a name that a machine offers is one: callers may ask for anything. */
export class ModelLabels {
  readonly #labels = new BoundedLabels(modelLabelsMax);
  readonly #offered: (model: string) => string | undefined;

  /** `offered` gives the id by which a present machine offers what a caller has named, if one does. */
  constructor(offered: (model: string) => string | undefined) {
    this.#offered = offered;
  }

  /** Of a model by the id that a machine has it under. */
  ofOffered(model: string): string {
    return this.#labels.of(model);
  }

  /** Of a model as a caller has named it. */
  ofAsked(model: string | undefined): string {
    if (model === undefined) return noModel;
    if (this.#labels.has(model)) return model;
    const offered = this.#offered(model);
    return offered === undefined ? otherLabel : this.#labels.of(offered);
  }
}
