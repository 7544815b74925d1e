/**
 * Trunkline's own types for the part of node-llama-cpp that it uses. The package is not installed with Trunkline, so
 * the package's types are missing too.
 */

export type Token = number;

export interface Library {
  getLlama(options: {
    readonly gpu: "auto" | false;
    readonly build: "never";
    readonly skipDownload: true;
    readonly progressLogs: false;
    readonly debug: false;
    readonly logLevel: "warn";
    readonly logger: (level: string, message: string) => void;
  }): Promise<Llama>;
  readGgufFileInfo(
    path: string,
    options: { readonly sourceType: "filesystem"; readonly logWarnings: false },
  ): Promise<FileInfo>;
  readonly GgufInsights: { from(info: FileInfo, llama: Llama): Promise<Insights> };
  readonly LlamaGrammarEvaluationState: new (of: { readonly model: Model; readonly grammar: Grammar }) => GrammarState;
  readonly TokenBias: new (tokenizer: Tokenizer) => TokenBias;
}

/** The Jinja library for chat templates, which is installed with node-llama-cpp. */
export interface TemplateLibrary {
  readonly Template: new (source: string) => { render(values: Readonly<Record<string, unknown>>): string };
}

export interface Llama {
  readonly gpu: string | false;
  readonly cpuMathCores: number;
  /** 0 means no limit. */
  maxThreads: number;
  loadModel(options: {
    readonly modelPath: string;
    readonly vocabOnly?: boolean;
    readonly gpuLayers?: number;
    readonly loadSignal?: AbortSignal;
    readonly onLoadProgress?: (part: number) => void;
  }): Promise<Model>;
  createGrammar(options: { readonly grammar: string }): Promise<Grammar>;
}

export interface FileInfo {
  readonly metadata: {
    readonly general: Readonly<Record<string, unknown>>;
    readonly tokenizer?: {
      readonly chat_template?: unknown;
      readonly ggml?: Readonly<Record<string, unknown>>;
    };
  };
  readonly architectureMetadata: Readonly<Record<string, unknown>>;
}

export interface Insights {
  readonly configurationResolver: {
    resolveAndScoreConfig(options: {
      readonly targetContextSize?: number;
      readonly embeddingContext?: boolean;
    }): Promise<{ readonly resolvedValues: { readonly contextSize: number; readonly gpuLayers: number } }>;
    resolveContextContextSize(
      wanted: { readonly max: number },
      given: { readonly modelGpuLayers: number; readonly modelTrainContextSize: number; readonly sequences: number },
    ): Promise<number>;
  };
}

export interface Tokenizer {
  isEogToken(token: Token): boolean;
}

export interface Model {
  readonly tokenizer: Tokenizer;
  readonly trainContextSize: number;
  readonly tokens: {
    readonly bos: Token | null;
    readonly shouldPrependBosToken: boolean;
    readonly infill: { readonly prefix: Token | null; readonly middle: Token | null; readonly suffix: Token | null };
  };
  tokenize(text: string, specialTokens: boolean, options?: "trimLeadingSpace"): Token[];
  detokenize(tokens: readonly Token[], specialTokens: boolean, lastTokens?: readonly Token[]): string;
  getTokenAttributes(token: Token): { readonly control: boolean };
  isEogToken(token: Token): boolean;
  createContext(options: {
    readonly sequences: number;
    readonly contextSize: { readonly max: number };
    readonly createSignal?: AbortSignal;
  }): Promise<Context>;
  createEmbeddingContext(options: {
    readonly contextSize: number;
    readonly batchSize: number;
    readonly createSignal?: AbortSignal;
  }): Promise<EmbeddingContext>;
  dispose(): Promise<void>;
}

export interface Context {
  readonly contextSize: number;
  readonly batchSize: number;
  getSequence(options: { readonly contextShift: ContextShift }): Sequence;
  dispose(): Promise<void>;
}

export interface ContextShift {
  readonly strategy: () => never;
}

export interface Sequence {
  readonly nextTokenIndex: number;
  compareContextTokens(tokens: readonly Token[]): { readonly firstDifferentIndex: number };
  adaptStateToTokens(tokens: readonly Token[], allowShift: boolean): Promise<void>;
  clearHistory(): Promise<void>;
  evaluateWithoutGeneratingNewTokens(tokens: readonly Token[]): Promise<void>;
  evaluate(tokens: readonly Token[], options: Sampling): AsyncGenerator<Token>;
  dispose(): Promise<void>;
}

export interface Sampling {
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly seed: number;
  readonly tokenBias?: TokenBias;
  readonly grammarEvaluationState?: GrammarState;
  readonly repeatPenalty?: {
    readonly punishTokens: () => readonly Token[];
    readonly penalty: number;
    readonly frequencyPenalty: number;
    readonly presencePenalty: number;
  };
}

export interface EmbeddingContext {
  getEmbeddingFor(tokens: readonly Token[]): Promise<{ readonly vector: readonly number[] }>;
  calculateInputLength(tokens: readonly Token[]): number;
  dispose(): Promise<void>;
}

export interface TokenBias {
  set(token: Token, bias: { readonly logit: number }): TokenBias;
}

declare const opaque: unique symbol;

export interface Grammar {
  readonly [opaque]?: "grammar";
}

export interface GrammarState {
  readonly [opaque]?: "grammar state";
}
