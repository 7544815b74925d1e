import type { Context, ContextShift, Sequence, Token } from "./gguf-library.ts";

/** A sequence that belongs to one run until the run disposes of it. */
export interface TakenSequence extends AsyncDisposable {
  readonly sequence: Sequence;
}

/** Fails a sequence that outgrows its window. Runs end before that: no conversation loses its beginning. */
const neverShift: ContextShift = {
  strategy: () => {
    throw new Error("a sequence has outgrown its window");
  },
};

/** The sequences of a context. Each runs one answer, and remembers its tokens for the next with the same prefix. */
export class SequencePool {
  readonly #context: Context;
  readonly #all: readonly Sequence[];
  readonly #free: Set<Sequence>;
  readonly #waiting: (() => void)[] = [];

  constructor(context: Context, count: number) {
    this.#context = context;
    this.#all = Array.from({ length: count }, () => context.getSequence({ contextShift: neverShift }));
    this.#free = new Set(this.#all);
  }

  get taken(): number {
    return this.#all.length - this.#free.size;
  }

  /** Waits for a free sequence, and takes the one that remembers most of the prompt. */
  async take(prompt: readonly Token[], signal: AbortSignal): Promise<TakenSequence> {
    while (this.#free.size === 0) await this.#untilOneIsFree(signal);
    signal.throwIfAborted();
    const remembered = (sequence: Sequence): number => sequence.compareContextTokens(prompt).firstDifferentIndex;
    const [sequence] = [...this.#free].sort((a, b) => remembered(b) - remembered(a));
    if (sequence === undefined) throw new Error("a free sequence has gone");
    this.#free.delete(sequence);
    return {
      sequence,
      [Symbol.asyncDispose]: async () => {
        this.#free.add(sequence);
        this.#waiting.shift()?.();
      },
    };
  }

  async close(): Promise<void> {
    for (const sequence of this.#all) await sequence.dispose();
    await this.#context.dispose();
  }

  #untilOneIsFree(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const freed = (): void => {
        signal.removeEventListener("abort", aborted);
        resolve();
      };
      const aborted = (): void => {
        const at = this.#waiting.indexOf(freed);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(signal.reason);
      };
      if (signal.aborted) return aborted();
      this.#waiting.push(freed);
      signal.addEventListener("abort", aborted, { once: true });
    });
  }
}
