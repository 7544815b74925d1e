import { randomInt } from "node:crypto";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault, originOf } from "#shared/fault/fault.ts";
import { ContextOverflow, tellOverflow } from "../runtime-faults.ts";
import type { ChatRun, EmitEvents, CompleteRun, Embeddings, EmbedRun } from "../runtime.ts";
import { StopCutter } from "../adjust-answer.ts";
import type { Engine, Generated, EngineModel, Sequence, Token } from "./gguf-engine.ts";
import type { GgufFile } from "./gguf-file.ts";
import type { GgufModel, LoadedModel } from "./gguf-model.ts";
import { honouringInTexts, nothingToContinue, refuseUnsupported } from "../refuse-unsupported.ts";

export interface GgufRequest<Run> {
  readonly run: Run;
  readonly gguf: GgufModel;
  readonly engine: Engine;
}

type GgufAnswerRequest = GgufRequest<ChatRun> | GgufRequest<CompleteRun>;

/** Takes the pieces of an answer from the engine. */
export interface EngineOutput {
  readonly text: (piece: string) => void;
  readonly thought: (piece: string, tokens: number) => void;
  readonly call: (name: string, json: string) => void;
  /** Ends the answer at the token limit, by an error. */
  readonly windowIsFull: () => never;
}

/** The options of a generation. They include those of the sampling, which only the engine reads. */
export interface GenerationOptions {
  readonly maxTokens: number;
  readonly signal: AbortSignal;
}

/** A prompt, and how the engine generates the answer to it. */
export interface Generation {
  readonly prompt: readonly Token[];
  readonly generate: (sequence: Sequence, options: GenerationOptions, output: EngineOutput) => Promise<Generated>;
}

/** Generates an answer. Emits its events, then the finish reason and the usage. */
export async function answer(
  request: GgufAnswerRequest,
  prepare: (loaded: LoadedModel) => Promise<Generation>,
  emit: EmitEvents,
): Promise<void> {
  const { run, gguf } = request;
  const { body, onProgress } = run;
  const events = new EventsInOrder(emit);
  const signal = AbortSignal.any([run.signal, gguf.closing, events.failed]);
  using loaded = await gguf.hold(() => onProgress("loading"));
  signal.throwIfAborted();
  const { prompt, generate } = await prepare(loaded);
  const windowTokens = Math.min(loaded.windowTokens, run.contextWindow);
  const fits = prompt.length <= Math.min(loaded.promptTokensMax, windowTokens - 1);
  if (!fits) throw overflow(prompt.length, windowTokens, run);
  const maxTokens = Math.min(body.max_tokens ?? Infinity, windowTokens - prompt.length);
  const sampling = samplingOf(request, loaded.model);
  using taken = loaded.take(prompt);
  const { sequence } = taken;
  const cachedTokens = await readPrompt(sequence, { prompt, batchTokens: loaded.batchTokens, signal, onProgress });

  const ended = new AbortController();
  const cutter = new StopCutter(body.stop ?? []);
  const tokensBefore = sequence.tokenMeter.usedOutputTokens;
  let [calls, reasoningTokens] = [0, 0];
  let reason = "eogToken";
  const output: EngineOutput = {
    text(piece) {
      onProgress();
      events.text("text", cutter.push(piece));
      if (cutter.stopped) ended.abort();
    },
    thought(piece, tokens) {
      onProgress();
      // Templates leave white space before a thought.
      const text = reasoningTokens === 0 ? piece.trimStart() : piece;
      if (text !== "") reasoningTokens += tokens;
      events.text("reasoning", text);
    },
    call(name, json) {
      const index = calls++;
      events.push({ kind: "tool-call-start", index, name }, { kind: "tool-call-delta", index, arguments: json });
    },
    windowIsFull() {
      reason = "maxTokens";
      ended.abort();
      throw new Error("the window is full");
    },
  };
  try {
    const options = { ...sampling, maxTokens, signal: AbortSignal.any([signal, ended.signal]) };
    ({ stopReason: reason } = (await generate(sequence, options, output)).metadata);
  } catch (error) {
    signal.throwIfAborted();
    if (!ended.signal.aborted) {
      await sequence.clearHistory();
      if (error instanceof Fault) throw error;
      const message = "The runtime failed during its answer.";
      throw new Fault("upstream_error", { message, internal: originOf(error), cause: error });
    }
  }
  events.text("text", cutter.end());
  // The token by which the model ends, or that follows a stop string, is no part of the answer.
  const generated = sequence.tokenMeter.usedOutputTokens - tokensBefore;
  const completionTokens = Math.max(0, reason === "eogToken" ? generated - 1 : generated);
  const thinking = reasoningTokens > 0 && { reasoningTokens };
  events.push(
    { kind: "finish", reason: reason === "maxTokens" ? "length" : "stop", stop: cutter.found },
    { kind: "usage", promptTokens: prompt.length, completionTokens, cachedTokens, ...thinking },
  );
  await events.emitted;
}

/**
 * Emits events one batch after the other. The engine cannot be held up, so what waits for a slow taker is bounded by the
 * window alone.
 */
class EventsInOrder {
  readonly #emit: EmitEvents;
  readonly #failure = new AbortController();
  readonly failed = this.#failure.signal;
  /** Settles when all events are emitted. */
  emitted: Promise<void> = Promise.resolve();

  constructor(emit: EmitEvents) {
    this.#emit = emit;
  }

  push(...events: readonly AnswerEvent[]): void {
    this.emitted = this.emitted.then(() => this.#emit(events));
    this.emitted.catch((error: unknown) => this.#failure.abort(error));
  }

  text(kind: "text" | "reasoning", text: string): void {
    if (text !== "") this.push({ kind, text });
  }
}

/**
 * Evaluates a prompt but its last token, in batches between which the signal is checked. Returns the number of tokens
 * that the sequence still remembered.
 */
async function readPrompt(
  sequence: Sequence,
  given: Pick<ChatRun, "signal" | "onProgress"> & { readonly prompt: readonly Token[]; readonly batchTokens: number },
): Promise<number> {
  const { batchTokens, signal, onProgress } = given;
  const prompt = given.prompt.slice(0, -1);
  await sequence.adaptStateToTokens(prompt, false);
  const remembered = sequence.nextTokenIndex;
  for (let at = remembered; at < prompt.length; at += batchTokens) {
    onProgress("prefill");
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(at, at + batchTokens));
    signal.throwIfAborted();
  }
  onProgress("prefill");
  return remembered;
}

/** The defaults of llama.cpp, where neither the request nor the model's file sets a value. */
const samplingDefaults = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 };
const seedsMax = 2 ** 32;

export function ownSamplingOf({ sampling }: GgufFile): typeof samplingDefaults {
  return { ...samplingDefaults, ...sampling };
}

function samplingOf({ run: { body }, gguf, engine }: GgufAnswerRequest, model: EngineModel): object {
  const { temperature, topP, topK, minP } = ownSamplingOf(gguf.file);
  const { frequency_penalty: frequencyPenalty = 0, presence_penalty: presencePenalty = 0, seed } = body;
  const { repeat_penalty: penalty = 1 } = body;
  const penalises = frequencyPenalty !== 0 || presencePenalty !== 0 || penalty !== 1;
  const wholeAnswer = { lastTokens: gguf.windowTokens, penalizeNewLine: true, penalty };
  const tokenBias = new engine.library.TokenBias(model.tokenizer);
  for (const [key, logit] of Object.entries(body.logit_bias ?? {})) {
    const token = Number(key);
    if (!/^\d{1,9}$/.test(key) || token >= gguf.file.tokenCount) throw refusedBias(key, "no token of this model");
    if (model.tokenizer.isEogToken(token)) throw refusedBias(key, "the token that ends an answer");
    tokenBias.set(token, { logit });
  }
  return {
    temperature: body.temperature ?? temperature,
    topP: body.top_p ?? topP,
    topK: body.top_k ?? topK,
    minP: body.min_p ?? minP,
    seed: seed === undefined ? randomInt(seedsMax) : ((seed % seedsMax) + seedsMax) % seedsMax,
    // The engine punishes repetition unless it is told not to.
    repeatPenalty: penalises && { ...wholeAnswer, frequencyPenalty, presencePenalty },
    ...(body.logit_bias !== undefined && { tokenBias }),
  };
}

function refusedBias(key: string, what: string): Fault {
  return new Fault("invalid_value", { message: `'logit_bias' names ${key}, which is ${what}.`, param: "logit_bias" });
}

/** Returns the fault for a prompt that leaves no room for an answer. No prompt is ever cut. */
function overflow(promptTokens: number, windowTokens: number, run: ChatRun | CompleteRun | EmbedRun): unknown {
  return tellOverflow(new ContextOverflow({ promptTokens, windowTokens }, "counted by the engine"), run);
}

const honoured = honouringInTexts("suffix", "logit_bias", "top_k", "min_p", "repeat_penalty");

/** Continues one text on a model of this process, or fills in the gap before `suffix`. */
export function ggufText(request: GgufRequest<CompleteRun>, emit: EmitEvents): Promise<void> {
  const { prompt: text, suffix } = request.run.body;
  refuseUnsupported(request.run.body, honoured);
  const prepare = async ({ model }: LoadedModel): Promise<Generation> => {
    // A client that sends a bare text writes the model's marks itself. The text around a gap is code, without marks.
    const plain = (code: string): Token[] => model.tokenize(code, false, "trimLeadingSpace");
    const before = suffix === undefined ? model.tokenize(text, true) : plain(text);
    const after = suffix === undefined ? undefined : plain(suffix);
    const prompt = promptOf(before, after, model);
    if (prompt.length === 0) throw nothingToContinue();
    return {
      prompt,
      async generate(contextSequence, options, output) {
        const completion = new request.engine.library.LlamaCompletion({ contextSequence });
        const all = { ...options, disableContextShift: true, contextShiftSize: 1, onTextChunk: output.text };
        try {
          if (after === undefined) return await completion.generateCompletionWithMeta(before, all);
          return await completion.generateInfillCompletionWithMeta(before, after, all);
        } finally {
          completion.dispose();
        }
      },
    };
  };
  return answer(request, prepare, emit);
}

/** Returns the prompt that the engine makes of a text, with a gap in it if there is a text after the gap. */
function promptOf(before: Token[], after: Token[] | undefined, { tokens }: EngineModel): Token[] {
  const beginning = tokens.shouldPrependBosToken && tokens.bos !== null ? [tokens.bos] : [];
  if (after === undefined) return [...beginning, ...before];
  const { prefix, suffix, middle } = tokens.infill;
  if (prefix === null || suffix === null || middle === null) {
    const message = "The model was not made to fill in a gap, so there can be no 'suffix'.";
    throw new Fault("unsupported_parameter", { message, param: "suffix" });
  }
  return [...beginning, prefix, ...before, suffix, ...after, middle];
}

/** Returns one vector of length one for each text. Refuses a text that is too long with both numbers; never cuts it. */
export async function ggufEmbed({ run, gguf }: GgufRequest<EmbedRun>): Promise<Embeddings> {
  const { body, onProgress } = run;
  const signal = AbortSignal.any([run.signal, gguf.closing]);
  using loaded = await gguf.hold(() => onProgress("loading"));
  const { model, embedding, windowTokens } = loaded;
  if (embedding === undefined) throw new Error("a model that does not embed was asked for a vector");
  const texts = body.input.map((text) => model.tokenize(text, false));
  const lengths = texts.map((tokens) => embedding.calculateInputLength([...tokens]));
  const longest = Math.max(...lengths);
  if (longest > windowTokens) throw overflow(longest, windowTokens, run);
  const vectors: number[][] = [];
  for (const tokens of texts) {
    signal.throwIfAborted();
    onProgress("prefill");
    const { vector } = await embedding.getEmbeddingFor(tokens);
    const dimensions = vector.length;
    if ((body.dimensions ?? dimensions) !== dimensions) {
      const message = `The vectors of this model have ${dimensions} dimensions, and the runtime does not shorten them.`;
      throw new Fault("unsupported_value", { message, param: "dimensions" });
    }
    const length = Math.hypot(...vector) || 1;
    vectors.push(vector.map((each) => each / length));
  }
  return { vectors, promptTokens: lengths.reduce((sum, length) => sum + length, 0) };
}
