import type { TokenLogprobs } from "../answer-event.ts";

/** How likely the tokens of a text were, as legacy completions write it: lists side by side instead of one of objects. */
export class LegacyLogprobs {
  readonly tokens: string[] = [];
  readonly token_logprobs: number[] = [];
  readonly top_logprobs: Record<string, number>[] = [];
  /** Where each token begins in the text of its choice, in characters. */
  readonly text_offset: number[] = [];

  /** Adds the tokens of a piece of text that begins at `offset`. */
  add(logprobs: TokenLogprobs, offset: number): void {
    let next = offset;
    for (const { token, logprob, top_logprobs: others } of logprobs) {
      this.tokens.push(token);
      this.token_logprobs.push(logprob);
      // The token itself is among them, however unlikely it was.
      this.top_logprobs.push(
        Object.fromEntries([...others, { token, logprob }].map((each) => [each.token, each.logprob])),
      );
      this.text_offset.push(next);
      next += token.length;
    }
  }
}
