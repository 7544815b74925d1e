import { findPackageJSON } from "node:module";
import { availableParallelism, constants } from "node:os";
import { dirname, join } from "node:path";
import { isSea } from "node:sea";
import { pathToFileURL } from "node:url";
import { setImmediate as nextTurn, setTimeout as pass } from "node:timers/promises";
import type { Log } from "#shared/process/log.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";

/** llama.cpp inside this process. */
export interface Engine {
  readonly library: Library;
  readonly llama: Llama;
  /** Runs a load. It fails with the first error that llama.cpp logs meanwhile, since a failed load gives no other reason. */
  explained<Loaded>(load: () => Promise<Loaded>): Promise<Loaded>;
}

export interface EngineOptions {
  /** A folder whose node_modules holds the engine, when the engine is not installed beside Trunkline. */
  readonly engineDir?: string | undefined;
  /** `auto` looks for a graphics card. Without a graphics card the processor computes. */
  readonly gpu?: "auto" | false | undefined;
  /** The number of threads that compute; by default the engine's own choice, at most one a core. */
  readonly threads?: number | undefined;
  readonly log: Log;
}

/** Time in which the log of a failed load is there. */
const logWithinMs = 50;
/** Turns of the event loop after that time: another thread is heard in each. */
const turnsAfter = 3;

const engineName = "node-llama-cpp";
export const engineVersion = "3.22.1";
/** A checkout finds the engine beside itself; a package, which npm may replace, finds it in a folder of its own. */
const installCommand = import.meta.filename.endsWith(".ts")
  ? `npm install --no-save ${engineName}@${engineVersion}`
  : `npm install --prefix ./engine ${engineName}@${engineVersion}, then set TRUNKLINE_ENGINE_DIR=./engine`;

/** The engines of this process by options. llama.cpp has one log, which a second instance would take from the first. */
const engines = new Map<string, Promise<Engine>>();

/** Loads the engine. Called only when a GGUF file is to be served: the plain install does not include the engine. */
export async function openEngine({ engineDir, gpu = "auto", threads, log }: EngineOptions): Promise<Engine> {
  const folder = engineFolder(engineDir);
  const key = JSON.stringify([folder, gpu, threads]);
  try {
    return await engines.getOrInsertComputed(key, () => start({ folder, gpu, threads, log }));
  } catch (error) {
    engines.delete(key);
    throw error;
  }
}

async function start(options: Omit<EngineOptions, "engineDir"> & { readonly folder: string }): Promise<Engine> {
  const { folder, gpu, threads, log } = options;
  const library: Library = await withoutSignals(() => import(pathToFileURL(join(folder, "dist", "index.js")).href));
  let firstError: string | undefined;
  const logger = (level: string, message: string): void => {
    if (level === "error" || level === "fatal") firstError ??= message.trim();
    log.debug({ engineLevel: level }, `llama.cpp: ${message.trim()}`);
  };
  // The engine must never build, download or print: a missing binary is reported as a `StartFailure` instead.
  const quiet = { build: "never", skipDownload: true, progressLogs: false, debug: false } as const;
  try {
    const llama = await library.getLlama({ ...quiet, gpu, logLevel: "warn", logger });
    // The engine never chooses fewer than four threads. More threads than cores only wait for each other.
    const useful = llama.maxThreads === 0 ? 0 : Math.min(llama.maxThreads, availableParallelism());
    llama.maxThreads = threads ?? useful;
    return {
      library,
      llama,
      async explained(load) {
        firstError = undefined;
        try {
          return await load();
        } catch (error) {
          // llama.cpp's log comes from another thread: later than its errors, and after its first line goes on. A process that
          // was starved runs its timers before it hears other threads, so turns follow in which it does.
          await pass(logWithinMs);
          for (let turn = 0; turn < turnsAfter; turn += 1) await nextTurn();
          throw firstError === undefined ? error : new Error(firstError, { cause: error });
        }
      },
    };
  } catch (error) {
    const message = `${engineName} has no llama.cpp that runs on this machine; install it here: ${installCommand}`;
    throw new StartFailure(exitCodes.unavailable, message, { cause: error });
  }
}

/**
 * Loads a library and removes the signal listeners that it added: only this process handles its signals. The library
 * listens for the sake of downloads, which never run here, and sends each signal again. The process would take that
 * for a second signal and exit in the middle of stopping.
 */
async function withoutSignals<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
  const signals = Object.keys(constants.signals) as NodeJS.Signals[];
  const before = new Map(signals.map((signal) => [signal, process.listeners(signal)]));
  const loaded = await load();
  for (const signal of signals) {
    const added = process.listeners(signal).filter((listener) => !before.get(signal)?.includes(listener));
    for (const listener of added) process.removeListener(signal, listener);
  }
  return loaded;
}

function engineFolder(dir: string | undefined): string {
  if (isSea()) {
    const remedy = "start llama-server with the file, which is found, or install Trunkline by npm";
    // The engine starts itself again by `process.execPath` to try its binaries.
    throw new StartFailure(exitCodes.unavailable, `This executable cannot load ${engineName}: ${remedy}.`);
  }
  try {
    const found = findPackageJSON(
      engineName,
      dir === undefined ? import.meta.url : pathToFileURL(join(dir, "beside.js")),
    );
    if (found !== undefined) return dirname(found);
  } catch {
    // A package that is missing gets the message below.
  }
  const where = dir === undefined ? "" : ` in ${dir} (TRUNKLINE_ENGINE_DIR)`;
  const message = `Serving a GGUF file needs ${engineName}, which is not installed${where}: ${installCommand}`;
  throw new StartFailure(exitCodes.unavailable, message);
}

// Trunkline's own types for the part of node-llama-cpp that it uses. The package is not installed with Trunkline, so the
// package's types are missing too.

export type Token = number;

export interface Library {
  getLlama(options: object): Promise<Llama>;
  readGgufFileInfo(path: string, options: object): Promise<FileInfo>;
  /** Names of quantisations by their number, such as `MOSTLY_Q4_K_M`. */
  readonly GgufFileType: Readonly<Record<number, string>>;
  resolveChatWrapper(model: EngineModel, options: object): ChatWrapper;
  readonly ChatWrapper: { readonly defaultSettings: ChatWrapper["settings"] };
  readonly LlamaChat: new (of: { readonly contextSequence: Sequence; readonly chatWrapper: ChatWrapper }) => EngineChat;
  readonly LlamaCompletion: new (of: { readonly contextSequence: Sequence }) => Completion;
  readonly TokenBias: new (tokenizer: Tokenizer) => { set(token: Token, bias: { readonly logit: number }): void };
}

export interface Llama {
  /** 0 means no limit. */
  maxThreads: number;
  loadModel(options: object): Promise<EngineModel>;
  createGrammarForJsonSchema(schema: GrammarSchema): Promise<Grammar>;
  createGrammar(options: Grammar & { readonly trimWhitespaceSuffix: boolean }): Promise<object>;
}

interface Grammar {
  readonly grammar: string;
  readonly stopGenerationTriggers: readonly unknown[];
}

export interface FileInfo {
  readonly metadata: {
    readonly general: Readonly<Record<string, unknown>>;
    readonly tokenizer?: { readonly ggml?: Readonly<Record<string, unknown>> };
  };
  readonly architectureMetadata: Readonly<Record<string, unknown>>;
  readonly fullTensorInfo?: readonly { readonly dimensions: readonly (number | bigint)[] }[];
}

export interface Tokenizer {
  isEogToken(token: Token): boolean;
}

export interface EngineModel {
  readonly tokenizer: Tokenizer;
  readonly tokens: {
    readonly bos: Token | null;
    readonly shouldPrependBosToken: boolean;
    readonly infill: { readonly prefix: Token | null; readonly middle: Token | null; readonly suffix: Token | null };
  };
  tokenize(text: string, specialTokens: boolean, options?: "trimLeadingSpace"): Token[];
  createContext(options: object): Promise<Context>;
  createEmbeddingContext(options: object): Promise<EmbeddingContext>;
  dispose(): Promise<void>;
}

export interface Context {
  readonly contextSize: number;
  readonly batchSize: number;
  getSequence(): Sequence;
  dispose(): Promise<void>;
}

export interface Sequence {
  readonly nextTokenIndex: number;
  readonly tokenMeter: { readonly usedOutputTokens: number };
  compareContextTokens(tokens: readonly Token[]): { readonly firstDifferentIndex: number };
  adaptStateToTokens(tokens: readonly Token[], allowShift: boolean): Promise<void>;
  evaluateWithoutGeneratingNewTokens(tokens: readonly Token[]): Promise<void>;
  clearHistory(): Promise<void>;
}

export interface EmbeddingContext {
  getEmbeddingFor(tokens: readonly Token[]): Promise<{ readonly vector: readonly number[] }>;
  calculateInputLength(tokens: readonly Token[]): number;
  dispose(): Promise<void>;
}

/** Writes a conversation in the form that a kind of model was trained with. */
export interface ChatWrapper {
  readonly wrapperName: string;
  readonly settings: {
    readonly functions: { readonly call: { readonly prefix: unknown; readonly paramsPrefix: unknown } };
    readonly segments?: { readonly thought?: object };
  };
  generateContextState(options: {
    readonly chatHistory: readonly HistoryItem[];
    readonly availableFunctions?: Functions | undefined;
  }): { readonly contextText: { tokenize(tokenizer: Tokenizer): Token[]; toString(): string } };
}

export type HistoryItem =
  | { readonly type: "system" | "user"; readonly text: string }
  | { readonly type: "model"; readonly response: (string | FunctionCall | ThoughtSegment)[] };

/** A tool call together with its result. `startsNewChunk` is true for the first of several parallel calls. */
export interface FunctionCall {
  readonly type: "functionCall";
  readonly name: string;
  readonly params: unknown;
  result: string | undefined;
  readonly startsNewChunk: boolean;
}

export interface ThoughtSegment {
  readonly type: "segment";
  readonly segmentType: "thought";
  readonly text: string;
  readonly ended: true;
}

/** A JSON schema in the dialect of node-llama-cpp's grammars. */
export type GrammarSchema = Readonly<Record<string, unknown>>;
export type Functions = Readonly<Record<string, { readonly description: string; readonly params: GrammarSchema }>>;

export interface EngineChat {
  generateResponse(
    history: readonly HistoryItem[],
    options: {
      readonly onResponseChunk: (chunk: {
        readonly segmentType: "thought" | "comment" | undefined;
        readonly segmentEndTime?: Date;
        readonly text: string;
        readonly tokens: readonly Token[];
      }) => void;
      readonly onFunctionCall?: (call: { readonly functionName: string; readonly params: unknown }) => void;
      readonly [option: string]: unknown;
    },
  ): Promise<Generated>;
  dispose(): void;
}

export interface Completion {
  generateCompletionWithMeta(input: readonly Token[], options: object): Promise<Generated>;
  generateInfillCompletionWithMeta(
    before: readonly Token[],
    after: readonly Token[],
    options: object,
  ): Promise<Generated>;
  dispose(): void;
}

export interface Generated {
  readonly metadata: { readonly stopReason: string };
}
