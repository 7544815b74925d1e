import type { OllamaShow } from "./ollama-model.ts";

/**
 * The window that Ollama gives a model on the smallest graphics cards. No larger window is promised before one is seen.
 */
const contextTokensDefault = 4_096;
const visionContextTokensMin = 2_048;

/**
 * The context windows that an Ollama gives its models. Ollama reports the window of a loaded model only. Its default
 * depends on its settings and on the graphics cards, and it does not report it. Both are learnt from loaded models.
 */
export class OllamaWindows {
  readonly #configuredDefault: number | undefined;
  readonly #seenByDigest = new Map<string, number>();
  #seenDefault: number | undefined;

  /** `configuredDefault` is OLLAMA_CONTEXT_LENGTH of the server, where that is known. */
  constructor(configuredDefault?: number) {
    this.#configuredDefault = configuredDefault;
  }

  /** Records a model of the list, and its window if it is loaded. */
  saw(digest: string, show: OllamaShow, loadedTokens: number | undefined): void {
    if (!loadedTokens) return;
    this.#seenByDigest.set(digest, loadedTokens);
    // A model that sets no window and got less than its trained one shows Ollama's default for all models.
    const isCut = loadedTokens < (show.trainedTokens ?? 0);
    if (isCut && show.configuredTokens === undefined && !show.isMlx) this.#seenDefault = loadedTokens;
  }

  /** Returns the window of the model now, or the one it would get if it were loaded now. */
  tokensOf(digest: string, show: OllamaShow): number {
    return this.#seenByDigest.get(digest) ?? this.#expected(show);
  }

  /** Returns the window to expect. The MLX engine reserves no window and uses the whole trained one. */
  #expected(show: OllamaShow): number {
    const trained = show.trainedTokens ?? Infinity;
    const usual = this.#configuredDefault ?? this.#seenDefault ?? contextTokensDefault;
    const unset = show.isMlx ? (show.trainedTokens ?? contextTokensDefault) : usual;
    const least = show.capabilities.vision ? visionContextTokensMin : 1;
    return Math.min(trained, Math.max(show.configuredTokens ?? unset, least));
  }
}
