import { Fault } from "#shared/fault/fault.ts";
import { ContextOverflow, toldOverflow } from "../context-overflow.ts";
import type { GgufModel } from "./gguf-model.ts";
import type { EmbedRun, Embeddings } from "../runtime.ts";

/** Returns one vector of length one for each text. Refuses a text that is too long with both numbers; never cuts it. */
export async function ggufEmbed(run: EmbedRun, gguf: GgufModel): Promise<Embeddings> {
  const { body, onProgress } = run;
  const signal = AbortSignal.any([run.signal, gguf.closing]);
  using held = await gguf.use(() => onProgress("loading"));
  const { model, embedding, windowTokens } = held.loaded;
  if (embedding === undefined) throw new Error("a model that does not embed was asked for a vector");
  const texts = body.input.map((text) => model.tokenize(text, false));
  const lengths = texts.map((tokens) => embedding.calculateInputLength([...tokens]));
  const longest = Math.max(...lengths);
  if (longest > windowTokens) throw overflow(longest, windowTokens);
  const vectors: number[][] = [];
  for (const tokens of texts) {
    signal.throwIfAborted();
    onProgress("prefill");
    const { vector } = await embedding.getEmbeddingFor(tokens);
    refuseDimensions(body.dimensions, vector.length);
    vectors.push(ofLengthOne(vector));
  }
  return { vectors, promptTokens: lengths.reduce((sum, length) => sum + length, 0) };
}

function ofLengthOne(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector) || 1;
  return vector.map((each) => each / length);
}

function overflow(promptTokens: number, windowTokens: number): Fault {
  const counted = new ContextOverflow({ promptTokens, windowTokens }, "counted by the engine");
  return toldOverflow(counted, { param: "input", contextWindow: windowTokens, estimatedTokens: promptTokens });
}

function refuseDimensions(wanted: number | undefined, own: number): void {
  if (wanted === undefined || wanted === own) return;
  throw new Fault("unsupported_value", {
    message: `The vectors of this model have ${own} dimensions, and the runtime does not shorten them.`,
    param: "dimensions",
  });
}
