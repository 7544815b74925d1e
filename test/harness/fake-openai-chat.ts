import { FakeEvents, type ErrorForm } from "./fake-answer.ts";

/** How one kind of server writes what it says in a chat. */
export interface ChatForm extends ErrorForm {
  /** The delta of the first chunk, where that comes before all text. */
  readonly opening?: object;
  /** What every delta with text has beside it. */
  readonly always?: object;
  /** The delta of a piece of a tool call, where that is more than the piece. */
  calling?(piece: object): object;
  /** What comes before all chunks. */
  readonly greeting?: string;
  /** The field that thoughts come in. */
  readonly reasoning: "reasoning" | "reasoning_content";
  /** The delta of the chunk that tells the finish reason. */
  readonly ending: object;
  chunk(model: string, choices: readonly object[]): object;
  choice(told: { readonly index: number; readonly delta: object; readonly finishReason: string | null }): object;
  /** The chunk that counts, after all others. */
  usage(model: string, usage: object): object;
}

/** The answer to one streamed chat. */
export class FakeOpenAiChat extends FakeEvents<ChatForm> {
  readonly #opened = new Set<number>();

  say(content: string, index = 0): void {
    this.delta({ content }, index);
  }

  think(text: string, index = 0): void {
    this.delta({ [this.form.reasoning]: text }, index);
  }

  /** One piece of a tool call; a whole one unless told. */
  call(piece: object, index = 0): void {
    this.delta(this.form.calling?.(piece) ?? { tool_calls: [piece] }, index);
  }

  delta(delta: object, index = 0): void {
    this.#open(index);
    this.#chunk({ index, delta: { ...this.form.always, ...delta }, finishReason: null });
  }

  finish(finishReason = "stop", index = 0): void {
    this.#open(index);
    this.#chunk({ index, delta: this.form.ending, finishReason });
  }

  /** The finish, the counts where they were asked for, `[DONE]`, and the end of the body. */
  done(options: { readonly finishReason?: string; readonly usage?: object } = {}): void {
    const { finishReason = "stop", usage = { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23 } } = options;
    this.finish(finishReason);
    if (this.wantsUsage) this.event(this.form.usage(this.model, usage));
    this.raw("data: [DONE]\n\n");
    this.end();
  }

  #open(index: number): void {
    if (this.#opened.has(index)) return;
    if (this.form.greeting !== undefined && this.#opened.size === 0) this.raw(this.form.greeting);
    this.#opened.add(index);
    if (this.form.opening) this.#chunk({ index, delta: this.form.opening, finishReason: null });
  }

  #chunk(told: Parameters<ChatForm["choice"]>[0]): void {
    this.event(this.form.chunk(this.model, [this.form.choice(told)]));
  }
}

/** How one kind of server writes what it says to a text that it continues. */
export interface TextForm extends ErrorForm {
  /** What comes before all chunks. */
  readonly greeting?: string;
  /** What comes after the text, and before `[DONE]`: the finish, and the counts where they were asked for. */
  ending(model: string, told: { readonly finishReason: string; readonly usage: object | undefined }): readonly object[];
  chunk(model: string, choices: readonly object[]): object;
  choice(told: { readonly text: string; readonly finishReason: string | null; readonly logprobs: unknown }): object;
  /** How likely a token was, where that was asked for. */
  logprobs(token: string, others: number): unknown;
}

/** The answer to one text that is to be continued, as a test gives it. */
export class FakeOpenAiText extends FakeEvents<TextForm> {
  #opened = false;

  say(text: string): void {
    this.#open();
    const { logprobs } = this.request.body;
    const told = typeof logprobs === "number" ? this.form.logprobs(text, logprobs) : null;
    const choice = this.form.choice({ text, finishReason: null, logprobs: told });
    this.event(this.form.chunk(this.model, [choice]));
  }

  /** The finish, the counts where they were asked for, `[DONE]`, and the end of the body. */
  done(options: { readonly finishReason?: string; readonly usage?: object } = {}): void {
    this.#open();
    const { finishReason = "stop", usage = { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23 } } = options;
    const told = { finishReason, usage: this.wantsUsage ? usage : undefined };
    for (const event of this.form.ending(this.model, told)) this.event(event);
    this.raw("data: [DONE]\n\n");
    this.end();
  }

  #open(): void {
    if (!this.#opened && this.form.greeting !== undefined) this.raw(this.form.greeting);
    this.#opened = true;
  }
}

/** As most servers end: the finish in a chunk of its own, and after it the counts in one without a choice. */
export function usualEnding(form: () => Pick<TextForm, "chunk" | "choice">): TextForm["ending"] {
  return (model, { finishReason, usage }) => {
    const { chunk, choice } = form();
    const finish = chunk(model, [choice({ text: "", finishReason, logprobs: null })]);
    return usage === undefined ? [finish] : [finish, { ...chunk(model, []), usage }];
  };
}

/** How likely tokens were, in lists side by side. */
export function legacyLogprobs(token: string, others: number): object {
  const likely = { [token]: -0.25, ...(others > 1 && { other: -1.5 }) };
  return { text_offset: [0], token_logprobs: [-0.25], tokens: [token], top_logprobs: [likely] };
}
