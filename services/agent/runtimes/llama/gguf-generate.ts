import type { Sampling, Sequence, Token } from "./gguf-library.ts";

export interface Generation {
  readonly sequence: Sequence;
  readonly prompt: readonly Token[];
  readonly sampling: Sampling;
  /** How many tokens may follow. */
  readonly tokensMax: number;
  /** How many tokens of the prompt are read at once, between two looks at the signal. */
  readonly batchTokens: number;
  readonly signal: AbortSignal;
  readonly onPrefill: () => void;
  /** How many tokens of the prompt the sequence still remembered. */
  readonly onRemembered: (tokens: number) => void;
}

/**
 * Reads a prompt and yields the tokens that follow, one by one. Returns whether the model itself came to an end, rather
 * than to `tokensMax`. Stops computing as soon as the signal aborts or nobody asks for more.
 */
export async function* generate(generation: Generation): AsyncGenerator<Token, boolean> {
  const { sequence, prompt, sampling, tokensMax, batchTokens, signal } = generation;
  // The last token is always read anew: what follows comes of reading it.
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
