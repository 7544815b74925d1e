import type { OllamaShow } from "./ollama-model.ts";

/** What Ollama gives a model on the smallest graphics cards: nothing larger is promised before it is seen. */
const contextTokensDefault = 4_096;
const visionContextTokensMin = 2_048;

/**
 * The context windows that an Ollama gives its models. It tells the one of a model that is loaded, and its own default,
 * which depends on its settings and on the graphics cards, to nobody; so both are learnt from what was seen loaded.
 */
export class OllamaWindows {
  readonly #configuredDefault: number | undefined;
  readonly #seenByDigest = new Map<string, number>();
  #seenDefault: number | undefined;

  /** `configuredDefault` is OLLAMA_CONTEXT_LENGTH as the server has it, where that is known. */
  constructor(configuredDefault?: number) {
    this.#configuredDefault = configuredDefault;
  }

  /** A model is there, and loaded with this window if there is one. */
  saw(digest: string, show: OllamaShow, loadedTokens: number | undefined): void {
    if (!loadedTokens) return;
    this.#seenByDigest.set(digest, loadedTokens);
    // A model that asks for no window of its own, and was cut to less than it can, shows what all others are cut to.
    const isCut = loadedTokens < (show.trainedTokens ?? 0);
    if (isCut && show.configuredTokens === undefined && !show.isMlx) this.#seenDefault = loadedTokens;
  }

  /** The window that the model has, or would be given if it were loaded now. */
  tokensOf(digest: string, show: OllamaShow): number {
    return this.#seenByDigest.get(digest) ?? this.#expected(show);
  }

  /** The MLX engine sets no window aside and uses all that there is. */
  #expected(show: OllamaShow): number {
    const trained = show.trainedTokens ?? Infinity;
    const usual = this.#configuredDefault ?? this.#seenDefault ?? contextTokensDefault;
    const unset = show.isMlx ? (show.trainedTokens ?? contextTokensDefault) : usual;
    const least = show.capabilities.vision ? visionContextTokensMin : 1;
    return Math.min(trained, Math.max(show.configuredTokens ?? unset, least));
  }
}
