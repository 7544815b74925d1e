import { Fault } from "#shared/fault/fault.ts";
import type { Log } from "#shared/process/log.ts";
import type { Engine } from "./gguf-engine.ts";
import type { GgufFile } from "./gguf-file.ts";
import type { EmbeddingContext, Model } from "./gguf-library.ts";
import { SequencePool } from "./sequence-pool.ts";

/** What of a model lies in memory. */
export interface LoadedModel {
  readonly model: Model;
  readonly windowTokens: number;
  /** For a model that answers. */
  readonly sequences?: SequencePool;
  readonly batchTokens: number;
  /** For a model that embeds. */
  readonly embedding?: EmbeddingContext;
}

export interface GgufModelOptions {
  readonly file: GgufFile;
  readonly engine: Engine;
  readonly slots: number;
  /** The largest window that is set aside for each slot. */
  readonly windowTokensMax: number;
  readonly log: Log;
}

/** Embedding reads a text in one go, which takes memory by the square of its length. */
const embedTokensMax = 8_192;

/** A model of this process: the only owner of its memory, which it takes when it is first asked for. */
export class GgufModel {
  readonly file: GgufFile;
  readonly #options: GgufModelOptions;
  readonly #closing = new AbortController();
  readonly #watchers = new Set<() => void>();
  #loading: Promise<LoadedModel> | undefined;
  #loaded: LoadedModel | undefined;
  #unloading: Promise<void> | undefined;
  #windowTokens: number;
  #users = 0;
  #onIdle: () => void = () => {};

  constructor(options: GgufModelOptions) {
    this.file = options.file;
    this.#options = options;
    const { trainedTokens, purpose } = options.file;
    const most = purpose === "embedding" ? embedTokensMax : options.windowTokensMax;
    this.#windowTokens = Math.min(trainedTokens, most);
  }

  get loaded(): boolean {
    return this.#loaded !== undefined;
  }

  /** The window that it runs, or would if it were loaded now as far as that can be known. */
  get windowTokens(): number {
    return this.#windowTokens;
  }

  /** How many runs hold the model. */
  get users(): number {
    return this.#users;
  }

  /** Aborts when the model is given up for good. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Asks the engine what would fit into the memory that is free now. */
  async estimateWindow(): Promise<void> {
    const { file, engine, slots } = this.#options;
    if (file.purpose !== "chat") return;
    const insights = await engine.library.GgufInsights.from(file.info, engine.llama);
    const { configurationResolver: resolver } = insights;
    const { resolvedValues } = await resolver.resolveAndScoreConfig({ targetContextSize: this.#windowTokens * slots });
    const fits = await resolver.resolveContextContextSize(
      { max: this.#windowTokens },
      { modelGpuLayers: resolvedValues.gpuLayers, modelTrainContextSize: file.trainedTokens, sequences: slots },
    );
    if (!this.loaded) this.#windowTokens = Math.min(this.#windowTokens, fits);
  }

  /** Lets a run have the model, loaded if it is not, and keeps it in memory for as long as the run lasts. */
  async use(onLoading: () => void): Promise<{ readonly loaded: LoadedModel } & Disposable> {
    this.#users += 1;
    try {
      const loaded = await this.load(onLoading);
      return { loaded, [Symbol.dispose]: () => this.#leave() };
    } catch (error) {
      this.#leave();
      throw error;
    }
  }

  async load(onLoading: () => void = () => {}): Promise<LoadedModel> {
    await this.#unloading;
    this.#closing.signal.throwIfAborted();
    if (this.#loaded !== undefined) return this.#loaded;
    this.#watchers.add(onLoading);
    onLoading();
    try {
      this.#loading ??= this.#load().finally(() => (this.#loading = undefined));
      return await this.#loading;
    } finally {
      this.#watchers.delete(onLoading);
    }
  }

  /** Gives the memory back. Must not be called while runs hold the model. */
  async unload(): Promise<void> {
    await this.#loading?.catch(() => undefined);
    const loaded = this.#loaded;
    if (loaded === undefined) return this.#unloading;
    this.#loaded = undefined;
    this.#unloading = dispose(loaded).finally(() => (this.#unloading = undefined));
    return this.#unloading;
  }

  /** For good: runs end at their next token, and nothing is loaded any more. */
  async close(): Promise<void> {
    this.#closing.abort(new Fault("shutting_down", { message: "The agent is stopping." }));
    const { promise: idle, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    if (this.#users > 0) await idle;
    await this.unload();
  }

  #leave(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#onIdle();
  }

  async #load(): Promise<LoadedModel> {
    const { file, engine, log } = this.#options;
    const { signal } = this.#closing;
    log.info({ model: file.id }, "loading a model");
    const onLoadProgress = (): void => this.#watchers.forEach((tell) => tell());
    const model = await engine.llama.loadModel({ modelPath: file.path, loadSignal: signal, onLoadProgress });
    try {
      const loaded = file.purpose === "embedding" ? await this.#forEmbedding(model) : await this.#forChat(model);
      this.#windowTokens = loaded.windowTokens;
      this.#loaded = loaded;
      log.info({ model: file.id, window: loaded.windowTokens }, "a model is loaded");
      return loaded;
    } catch (error) {
      await model.dispose();
      throw error;
    }
  }

  async #forChat(model: Model): Promise<LoadedModel> {
    const { file, slots, windowTokensMax } = this.#options;
    const max = Math.min(file.trainedTokens, windowTokensMax);
    const context = await model.createContext({
      sequences: slots,
      contextSize: { max },
      createSignal: this.#closing.signal,
    });
    return {
      model,
      windowTokens: Math.min(max, context.contextSize),
      batchTokens: context.batchSize,
      sequences: new SequencePool(context, slots),
    };
  }

  /** The engine takes texts that are shorter than its window by one token at least. */
  async #forEmbedding(model: Model): Promise<LoadedModel> {
    const windowTokens = this.#windowTokens;
    const size = windowTokens + 1;
    const createSignal = this.#closing.signal;
    const embedding = await model.createEmbeddingContext({ contextSize: size, batchSize: size, createSignal });
    return { model, windowTokens, batchTokens: size, embedding };
  }
}

/** In this order, and each by name: what the engine is left to collect by itself is never given back. */
async function dispose({ sequences, embedding, model }: LoadedModel): Promise<void> {
  await sequences?.close();
  await embedding?.dispose();
  await model.dispose();
}
