import { FakeEvents, type ErrorForm } from "./fake-events.ts";

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
