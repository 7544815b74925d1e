import { Fault } from "#shared/fault/fault.ts";
import { honouringInTexts, nothingToContinue, refuseUnsupportedText } from "../refuse-unsupported.ts";
import type { CompleteRun, Embeddings, EmbedRun, EmitEvents } from "../runtime.ts";
import { answer, overflow, type Asked, type Generation } from "./gguf-answer.ts";
import type { Model, Token } from "./gguf-engine.ts";
import type { LoadedModel } from "./gguf-model.ts";

const honoured = honouringInTexts("suffix", "logit_bias");

/** Continues one text on a model of this process, or fills in the gap before `suffix`. */
export function ggufText(asked: Asked<CompleteRun>, emit: EmitEvents): Promise<void> {
  const { prompt: text, suffix } = asked.run.body;
  refuseUnsupportedText(asked.run.body, honoured);
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
        const completion = new asked.engine.library.LlamaCompletion({ contextSequence });
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
  return answer(asked, "prompt", prepare, emit);
}

/** Returns the prompt that the engine makes of a text, with a gap in it if there is a text after the gap. */
function promptOf(before: Token[], after: Token[] | undefined, { tokens }: Model): Token[] {
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
export async function ggufEmbed({ run, gguf }: Asked<EmbedRun>): Promise<Embeddings> {
  const { body, onProgress } = run;
  const signal = AbortSignal.any([run.signal, gguf.closing]);
  using loaded = await gguf.hold(() => onProgress("loading"));
  const { model, embedding, windowTokens } = loaded;
  if (embedding === undefined) throw new Error("a model that does not embed was asked for a vector");
  const texts = body.input.map((text) => model.tokenize(text, false));
  const lengths = texts.map((tokens) => embedding.calculateInputLength([...tokens]));
  const longest = Math.max(...lengths);
  if (longest > windowTokens) throw overflow(longest, windowTokens, "input");
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
