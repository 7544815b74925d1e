import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { modelsPerMachineMax } from "#shared/model/model.ts";
import {
  describeModel,
  modelIdOf,
  ollamaShow,
  ollamaTag,
  type OllamaHost,
  type OllamaShow,
  type OllamaTag,
} from "./ollama-model.ts";
import { OllamaWindows } from "./ollama-windows.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";

const tagList = z.object({ models: z.array(ollamaTag).nullish() });
const loadedList = z.object({
  models: z.array(z.object({ name: z.string(), context_length: z.number().nullish() })).nullish(),
});

/** The number of models that are described at once. */
const showsAtOnce = 8;

/** A model that can run a chat, by its name in Ollama. `loaded` is true if the last list had it in memory. */
export interface OllamaEntry {
  readonly name: string;
  readonly show: OllamaShow;
  readonly loaded: boolean;
}

/**
 * The models of one Ollama. A model's capabilities are requested once for each digest, so another read of the list
 * costs two small requests. Only this class maps a client's id back to Ollama's name.
 */
export class OllamaCatalogue {
  readonly #connection: RuntimeConnection;
  readonly #host: OllamaHost;
  #windows: OllamaWindows;
  #showByDigest: ReadonlyMap<string, OllamaShow> = new Map();
  #entryById: ReadonlyMap<string, OllamaEntry> = new Map();

  constructor(options: { connection: RuntimeConnection; host: OllamaHost }) {
    this.#connection = options.connection;
    this.#host = options.host;
    this.#windows = new OllamaWindows(options.host.contextTokens);
  }

  async read(signal: AbortSignal): Promise<readonly DescribedModel[]> {
    const [tags, loaded] = await Promise.all([
      this.#connection.ask(tagList, { path: "/api/tags", signal }),
      this.#connection.ask(loadedList, { path: "/api/ps", signal }),
    ]).catch((error: unknown) => {
      if (Fault.from(error).code === "runtime_offline") this.#forget();
      throw error;
    });
    const local = (tags.models ?? [])
      .filter((tag) => !tag.remote_model && !tag.remote_host)
      .slice(0, modelsPerMachineMax);
    const shows = await this.#showAll(local, signal);
    const loadedTokens = new Map((loaded.models ?? []).map(({ name, context_length: tokens }) => [name, tokens]));

    for (const tag of local) {
      const show = shows.get(tag.digest);
      if (show !== undefined) this.#windows.saw(tag.digest, show, loadedTokens.get(tag.name) ?? undefined);
    }

    const models: DescribedModel[] = [];
    const entries = new Map<string, OllamaEntry>();
    for (const tag of local) {
      const show = shows.get(tag.digest);
      if (show === undefined) continue;
      const isLoaded = loadedTokens.has(tag.name);
      const contextTokens = this.#windows.tokensOf(tag.digest, show);
      const model = describeModel({ tag, show, contextTokens, isLoaded, host: this.#host });
      if (model === undefined) continue;
      models.push(model);
      entries.set(model.id, { name: tag.name, show, loaded: isLoaded });
    }
    this.#entryById = entries;
    return models;
  }

  /** Forgets all descriptions and windows. The Ollama that comes back may have another version and other settings. */
  #forget(): void {
    this.#showByDigest = new Map();
    this.#windows = new OllamaWindows(this.#host.contextTokens);
  }

  /** Returns the model for a client's id. A model that the last list did not have is requested from Ollama. */
  async find(id: string, signal: AbortSignal): Promise<OllamaEntry> {
    const known = this.#entryById.get(modelIdOf(id));
    if (known !== undefined) return known;
    const show = await this.#show(id, signal);
    if (!show.isRemote) return { name: id, show, loaded: false };
    throw new Fault("model_not_found", { message: "The model does not run on this machine.", param: "model" });
  }

  async #showAll(tags: readonly OllamaTag[], signal: AbortSignal): Promise<ReadonlyMap<string, OllamaShow>> {
    const shows = new Map<string, OllamaShow>();
    const missing: OllamaTag[] = [];
    for (const tag of tags) {
      const known = this.#showByDigest.get(tag.digest);
      if (known === undefined) missing.push(tag);
      else shows.set(tag.digest, known);
    }
    // Keeps the descriptions even when the signal ends the rest, so that the next read gets further.
    this.#showByDigest = shows;
    for (let from = 0; from < missing.length; from += showsAtOnce) {
      await Promise.all(
        missing.slice(from, from + showsAtOnce).map(async (tag) => {
          const show = await this.#showUnlessBroken(tag.name, signal);
          if (show !== undefined) shows.set(tag.digest, show);
        }),
      );
    }
    return shows;
  }

  /**
   * Returns undefined for a model that Ollama cannot describe or that was just removed. The other models stay visible.
   */
  async #showUnlessBroken(name: string, signal: AbortSignal): Promise<OllamaShow | undefined> {
    try {
      return await this.#show(name, signal);
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  #show(name: string, signal: AbortSignal): Promise<OllamaShow> {
    return this.#connection.ask(ollamaShow, { path: "/api/show", body: { model: name }, signal });
  }
}
