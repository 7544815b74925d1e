import { Fault } from "#shared/fault/fault.ts";
import type { Log } from "#shared/process/log.ts";
import type { EmbeddingContext, Engine, EngineModel, Sequence, Token } from "./gguf-engine.ts";
import type { GgufFile } from "./gguf-file.ts";

/** The parts of a model that are in memory. */
export interface LoadedModel {
  readonly model: EngineModel;
  readonly windowTokens: number;
  /** The longest prompt that the engine answers: it ends a conversation a little before its context. */
  readonly promptTokensMax: number;
  /** The number of tokens that are evaluated at once. */
  readonly batchTokens: number;
  /** Takes the free sequence that remembers most of a prompt, until it is disposed of. */
  readonly take: (prompt: readonly Token[]) => { readonly sequence: Sequence } & Disposable;
  /** Set if the model embeds. It then has no sequences to take. */
  readonly embedding?: EmbeddingContext;
  /** Frees each part explicitly: the engine never frees a part that is left to it to collect. */
  readonly dispose: () => Promise<void>;
}

interface GgufModelOptions {
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
  /** The window of the loaded model, in tokens. Before the first load, the largest window that it may get. */
  windowTokens: number;
  /** The runs that hold the model. */
  users = 0;
  readonly #options: GgufModelOptions;
  readonly #closing = new AbortController();
  readonly closing = this.#closing.signal;
  readonly #watchers = new Set<() => void>();
  #loading: Promise<LoadedModel> | undefined;
  #loaded: LoadedModel | undefined;
  #unloading: Promise<void> | undefined;
  #onIdle: () => void = () => {};

  constructor(options: GgufModelOptions) {
    this.file = options.file;
    this.#options = options;
    const { trainedTokens, purpose } = options.file;
    this.windowTokens = Math.min(trainedTokens, purpose === "embedding" ? embedTokensMax : options.windowTokensMax);
  }

  get loaded(): boolean {
    return this.#loaded !== undefined;
  }

  /** Loads the model if necessary, and keeps it in memory until the result is disposed of. */
  async hold(onLoading: () => void): Promise<LoadedModel & Disposable> {
    this.users += 1;
    const leave = (): void => {
      this.users -= 1;
      if (this.users === 0) this.#onIdle();
    };
    try {
      return { ...(await this.load(onLoading)), [Symbol.dispose]: leave };
    } catch (error) {
      leave();
      throw error;
    }
  }

  async load(onLoading: () => void = () => {}): Promise<LoadedModel> {
    await this.#unloading;
    this.closing.throwIfAborted();
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
    this.#unloading = loaded.dispose().finally(() => (this.#unloading = undefined));
    return this.#unloading;
  }

  /** Closes the model for good: runs end at their next token, and every later `load` fails. */
  async close(): Promise<void> {
    this.#closing.abort(new Fault("shutting_down", { message: "The agent is stopping." }));
    const { promise: idle, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    if (this.users > 0) await idle;
    await this.unload();
  }

  async #load(): Promise<LoadedModel> {
    const { file, engine, log } = this.#options;
    log.info({ model: file.id }, "loading a model");
    const onLoadProgress = (): void => this.#watchers.forEach((report) => report());
    const model = await engine.llama.loadModel({ modelPath: file.path, loadSignal: this.closing, onLoadProgress });
    try {
      this.#loaded = file.purpose === "embedding" ? await this.#forEmbedding(model) : await this.#forChat(model);
      this.windowTokens = this.#loaded.windowTokens;
      log.info({ model: file.id, window: this.windowTokens }, "a model is loaded");
      return this.#loaded;
    } catch (error) {
      await model.dispose();
      throw error;
    }
  }

  async #forChat(model: EngineModel): Promise<LoadedModel> {
    const { file, slots, windowTokensMax } = this.#options;
    const max = Math.min(file.trainedTokens, windowTokensMax);
    const createSignal = this.closing;
    const context = await model.createContext({ sequences: slots, contextSize: { max }, createSignal });
    const free = new Set(Array.from({ length: slots }, () => context.getSequence()));
    return {
      model,
      windowTokens: Math.min(max, context.contextSize),
      promptTokensMax: Math.min(max - 1, context.contextSize - 2),
      batchTokens: context.batchSize,
      take(prompt) {
        const remembered = (sequence: Sequence): number => sequence.compareContextTokens(prompt).firstDifferentIndex;
        const [sequence] = [...free].sort((a, b) => remembered(b) - remembered(a));
        if (sequence === undefined) {
          throw new Fault("server_is_overloaded", { message: "All slots of the model are taken." });
        }
        free.delete(sequence);
        return { sequence, [Symbol.dispose]: () => void free.add(sequence) };
      },
      async dispose() {
        await context.dispose();
        await model.dispose();
      },
    };
  }

  /** Creates a context one token larger than the window: the engine only takes texts shorter than its context. */
  async #forEmbedding(model: EngineModel): Promise<LoadedModel> {
    const { windowTokens } = this;
    const size = windowTokens + 1;
    const createSignal = this.closing;
    const embedding = await model.createEmbeddingContext({ contextSize: size, batchSize: size, createSignal });
    return {
      model,
      windowTokens,
      promptTokensMax: windowTokens,
      batchTokens: size,
      embedding,
      take() {
        throw new Error("a model that embeds was asked for an answer");
      },
      async dispose() {
        await embedding.dispose();
        await model.dispose();
      },
    };
  }
}
