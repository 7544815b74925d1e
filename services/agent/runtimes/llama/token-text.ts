import type { Model, Token } from "./gguf-library.ts";

/** Bounds the tokens held back for one character. No character takes as many. */
const pendingTokensMax = 16;

/**
 * Turns tokens into text as they arrive. A character may be spread over several tokens, so `TokenText` holds back the
 * last character of a text until it is whole.
 */
export class TokenText {
  readonly #model: Pick<Model, "detokenize">;
  #before: Token[];
  #pending: Token[] = [];
  #given = 0;

  /** `before` are the tokens before the text: they decide about spaces between words. */
  constructor(model: Pick<Model, "detokenize">, before: readonly Token[]) {
    this.#model = model;
    this.#before = before.slice(-pendingTokensMax);
  }

  push(token: Token): string {
    this.#pending.push(token);
    const text = this.#model.detokenize(this.#pending, true, this.#before);
    const whole = this.#pending.length < pendingTokensMax ? text.replace(/\uFFFD+$/, "") : text;
    const fresh = whole.slice(this.#given);
    this.#given = whole.length;
    if (whole.length === text.length) this.#settle();
    return fresh;
  }

  /** Returns the rest of a character that never became whole. */
  end(): string {
    const rest = this.#model.detokenize(this.#pending, true, this.#before).slice(this.#given);
    this.#settle();
    return rest;
  }

  #settle(): void {
    this.#before = [...this.#before, ...this.#pending].slice(-pendingTokensMax);
    this.#pending = [];
    this.#given = 0;
  }
}
