import type { TokenLogprobs } from "../answer-event.ts";

/** Logprobs in the format of legacy completions: parallel lists instead of a list of objects. */
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
      // The list always includes the token itself, however unlikely it was.
      this.top_logprobs.push(
        Object.fromEntries([...others, { token, logprob }].map((each) => [each.token, each.logprob])),
      );
      this.text_offset.push(next);
      next += token.length;
    }
  }
}
