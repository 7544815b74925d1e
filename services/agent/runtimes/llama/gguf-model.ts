import { Fault } from "#shared/fault/fault.ts";
import type { Log } from "#shared/process/log.ts";
import type { Engine } from "./gguf-engine.ts";
import type { GgufFile } from "./gguf-file.ts";
import type { EmbeddingContext, Model } from "./gguf-library.ts";
import { SequencePool } from "./sequence-pool.ts";

/** The parts of a model that are in memory. */
export interface LoadedModel {
  readonly model: Model;
  readonly windowTokens: number;
  /** Set unless the model embeds. */
  readonly sequences?: SequencePool;
  readonly batchTokens: number;
  /** Set if the model embeds. */
  readonly embedding?: EmbeddingContext;
}

export interface GgufModelOptions {
  readonly file: GgufFile;
  readonly engine: Engine;
  readonly slots: number;
  /** Bounds the window of each slot. */
  readonly windowTokensMax: number;
  readonly log: Log;
}

/** Bounds the window of an embedding model, which reads a text at once: memory grows with the square of its length. */
const embedTokensMax = 8_192;

/** A model of this process. `GgufModel` alone owns the model's memory, and allocates it on the first `load`. */
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

  /** The window of the loaded model, in tokens. Before a load, the best known estimate of that window. */
  get windowTokens(): number {
    return this.#windowTokens;
  }

  /** The number of runs that hold the model. */
  get users(): number {
    return this.#users;
  }

  /** Aborts when `close` is called. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Asks the engine which window fits into the memory that is free now. */
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

  /** Loads the model if necessary, and keeps it in memory until the run disposes of the result. */
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

  /** Frees the memory. Must not be called while runs hold the model. */
  async unload(): Promise<void> {
    await this.#loading?.catch(() => undefined);
    const loaded = this.#loaded;
    if (loaded === undefined) return this.#unloading;
    this.#loaded = undefined;
    this.#unloading = dispose(loaded).finally(() => (this.#unloading = undefined));
    return this.#unloading;
  }

  /** Closes the model for good: runs end at their next token, and every later `load` fails. */
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

  /** Creates a context one token larger than the window: the engine only takes texts shorter than its context. */
  async #forEmbedding(model: Model): Promise<LoadedModel> {
    const windowTokens = this.#windowTokens;
    const size = windowTokens + 1;
    const createSignal = this.#closing.signal;
    const embedding = await model.createEmbeddingContext({ contextSize: size, batchSize: size, createSignal });
    return { model, windowTokens, batchTokens: size, embedding };
  }
}

/** Disposes of each part explicitly and in this order: the engine never frees a part that is left to it to collect. */
async function dispose({ sequences, embedding, model }: LoadedModel): Promise<void> {
  await sequences?.close();
  await embedding?.dispose();
  await model.dispose();
}
