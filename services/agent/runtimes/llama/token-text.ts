import type { Model, Token } from "./gguf-library.ts";

/** As many tokens as one character can take, and more. */
const pendingTokensMax = 16;

/**
 * Turns tokens into text as they come. A character may be spread over several tokens, so the last of a text is held
 * back for as long as it is not whole.
 */
export class TokenText {
  readonly #model: Pick<Model, "detokenize">;
  #before: Token[];
  #pending: Token[] = [];
  #given = 0;

  /** What came before decides about spaces between words. */
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

  /** What is left of a character that never became whole. */
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
