import { FakeEvents, type ErrorForm } from "./fake-events.ts";

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
