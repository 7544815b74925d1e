import type { Sampling, Sequence, Token } from "./gguf-library.ts";

export interface Generation {
  readonly sequence: Sequence;
  readonly prompt: readonly Token[];
  readonly sampling: Sampling;
  /** Bounds the generated tokens. */
  readonly tokensMax: number;
  /** The number of prompt tokens in one batch. `signal` is checked between two batches. */
  readonly batchTokens: number;
  readonly signal: AbortSignal;
  readonly onPrefill: () => void;
  /** Reports the number of prompt tokens that the sequence still remembered. */
  readonly onRemembered: (tokens: number) => void;
}

/**
 * Reads a prompt and yields the tokens that follow, one by one. Returns true if the model ended by itself, false if it
 * reached `tokensMax`. Stops computing as soon as the signal aborts or the consumer stops reading.
 */
export async function* generate(generation: Generation): AsyncGenerator<Token, boolean> {
  const { sequence, prompt, sampling, tokensMax, batchTokens, signal } = generation;
  // The last prompt token is always evaluated again: the next token results from its evaluation.
  await sequence.adaptStateToTokens(prompt.slice(0, -1), false);
  generation.onRemembered(sequence.nextTokenIndex);
  let rest = prompt.slice(sequence.nextTokenIndex);
  while (rest.length > batchTokens) {
    generation.onPrefill();
    await sequence.evaluateWithoutGeneratingNewTokens(rest.slice(0, batchTokens));
    signal.throwIfAborted();
    rest = rest.slice(batchTokens);
  }
  generation.onPrefill();
  let generated = 0;
  for await (const token of sequence.evaluate(rest, sampling)) {
    signal.throwIfAborted();
    yield token;
    generated += 1;
    if (generated >= tokensMax) return false;
  }
  signal.throwIfAborted();
  return true;
}
