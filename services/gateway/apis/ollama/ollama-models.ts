import { hash } from "node:crypto";
import { type DetailedModel, taggedName } from "#shared/protocol/model.ts";
import type { Listing } from "../../jobs/live-models.ts";

/**
 * The version of Ollama whose API this gateway speaks. Clients compare it before they send a field of a newer version.
 */
export const ollamaVersion = "0.17.4";

/** Returns the details of a model. Those that its machines do not report are empty, as Ollama itself has them. */
function details({ context_window: context_length, details: told = {} }: DetailedModel) {
  const { family = "", parameter_size = "", quantization_level = "" } = told;
  const families = family === "" ? [] : [family];
  return { parent_model: "", format: "", family, families, parameter_size, quantization_level, context_length };
}

const megabyte = 1_000_000;

/** Returns the fields by which Ollama names a model. The digest is that of the catalogue's entry, and changes with it. */
function named(model: DetailedModel) {
  const name = taggedName(model.id);
  return { name, model: name, digest: hash("sha256", JSON.stringify(model)), details: details(model) };
}

/** Returns the facts of a model that its list and its description share. */
function described(model: DetailedModel) {
  const capabilities = Object.entries(model.capabilities).flatMap(([name, has]) => (has ? [name] : []));
  return { details: details(model), capabilities, modified_at: new Date(model.created * 1_000).toISOString() };
}

/** Returns the models of `/api/tags`, the newest first. */
export function ollamaTags(models: readonly DetailedModel[]): object {
  const newest = models.toSorted((one, other) => other.created - one.created);
  return { models: newest.map((each) => ({ ...named(each), ...described(each), size: each.size_mb * megabyte })) };
}

/** A time that never comes: machines keep a model until they need its memory. */
const noEnd = "9999-12-31T23:59:59Z";

/**
 * Returns the models of `/api/ps`: those that a machine reports to be in memory. Where graphics cards share the memory
 * of a model is unknown, so `size_vram` counts all of it.
 */
export function ollamaLoaded(models: readonly DetailedModel[], { answers }: Pick<Listing, "answers">): object {
  const offered = answers.flatMap(({ answer, external }) => (typeof answer === "string" || external ? [] : [answer]));
  const loaded = offered.flat().filter(({ loaded: isLoaded }) => isLoaded === true);
  return {
    models: models.flatMap((model) => {
      const here = loaded.filter(({ id }) => id === model.id);
      if (here.length === 0) return [];
      const size = Math.max(...here.map(({ memory_mb, size_mb }) => memory_mb ?? size_mb)) * megabyte;
      return [{ ...named(model), size, size_vram: size, expires_at: noEnd, context_length: model.context_window }];
    }),
  };
}

/** The architecture of a model whose family is unknown: clients find the window by its name. */
const unknownArchitecture = "unknown";

/** Returns the properties of a model, as `/api/show` has them. */
export function ollamaShow(model: DetailedModel): object {
  const architecture = model.details?.family || unknownArchitecture;
  const window = { [`${architecture}.context_length`]: model.context_window };
  const model_info = { "general.architecture": architecture, "general.basename": model.id, ...window };
  return { modelfile: "", parameters: "", template: "", ...described(model), model_info };
}
