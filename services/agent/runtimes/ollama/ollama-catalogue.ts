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

/** How many models are looked into at once. */
const showsAtOnce = 8;

/** A model that a chat can be run on: its name as Ollama prints it, what it can do, and whether it lay in memory lately. */
export interface OllamaEntry {
  readonly name: string;
  readonly show: OllamaShow;
  readonly loaded: boolean;
}

/**
 * The models of one Ollama. What a model can do is asked once for each digest, so that reading the list again costs two
 * small requests; a client's id is mapped back to Ollama's name here and nowhere else.
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

  /** The Ollama that comes back may be of another version, and be set up in another way. */
  #forget(): void {
    this.#showByDigest = new Map();
    this.#windows = new OllamaWindows(this.#host.contextTokens);
  }

  /** The model that a client means. One that was not in the list when it was last read is asked for. */
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
    // What was learnt is kept even when the signal ends the rest, so that the next reading gets further.
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

  /** One model that Ollama cannot describe, or that was removed just now, does not hide the others. */
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
