import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FakeRequest } from "./fake-openai-server.ts";

/** How one kind of server writes what it says in a chat. */
export interface ChatForm {
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
  error(status: number, message: string): object;
}

/** The answer to one streamed chat, as a test gives it. What was written is on its way when the call returns. */
export class FakeOpenAiChat {
  readonly request: FakeRequest;
  readonly #response: ServerResponse;
  readonly #form: ChatForm;
  readonly #model: string;
  readonly #opened = new Set<number>();

  constructor(options: {
    readonly request: FakeRequest;
    readonly response: ServerResponse;
    readonly form: ChatForm;
    /** As the server calls it, whatever it was asked for. */
    readonly model: string;
  }) {
    this.request = options.request;
    this.#response = options.response;
    this.#form = options.form;
    this.#model = options.model;
  }

  say(content: string, index = 0): void {
    this.delta({ content }, index);
  }

  think(text: string, index = 0): void {
    this.delta({ [this.#form.reasoning]: text }, index);
  }

  /** One piece of a tool call; a whole one unless told. */
  call(piece: object, index = 0): void {
    this.delta(this.#form.calling?.(piece) ?? { tool_calls: [piece] }, index);
  }

  delta(delta: object, index = 0): void {
    this.#open(index);
    this.#chunk({ index, delta: { ...this.#form.always, ...delta }, finishReason: null });
  }

  finish(finishReason = "stop", index = 0): void {
    this.#open(index);
    this.#chunk({ index, delta: this.#form.ending, finishReason });
  }

  /** The finish, the counts where they were asked for, `[DONE]`, and the end of the body. */
  done(options: { readonly finishReason?: string; readonly usage?: object } = {}): void {
    const { finishReason = "stop", usage = { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23 } } = options;
    this.finish(finishReason);
    if (wantsUsage(this.request.body)) this.event(this.#form.usage(this.#model, usage));
    this.raw("data: [DONE]\n\n");
    this.end();
  }

  /** One event with this as its data. */
  event(data: object): void {
    this.raw(`data: ${JSON.stringify(data)}\n\n`);
  }

  raw(bytes: string | Uint8Array): void {
    this.rawWith(200, bytes);
  }

  /** The first bytes of an answer with this status, which may be followed by more. */
  rawWith(status: number, bytes: string | Uint8Array): void {
    if (!this.#response.headersSent) this.#response.writeHead(status, { "content-type": "text/event-stream" });
    this.#response.write(bytes);
  }

  /** Sends no more before the client has taken what was written. */
  async drained(): Promise<void> {
    if (!this.#response.writableNeedDrain) return;
    const seen = new AbortController();
    await Promise.race(["drain", "close"].map((name) => once(this.#response, name, { signal: seen.signal })));
    seen.abort();
  }

  end(): void {
    this.#response.end();
  }

  /** Breaks the connection. */
  cut(): void {
    this.#response.destroy();
  }

  /** Refuses the request in this server's form, or with exactly this body. */
  refuse(status: number, error: string | object): void {
    const body = typeof error === "string" ? this.#form.error(status, error) : error;
    this.refuseWith(status, { contentType: "application/json", body: JSON.stringify(body) });
  }

  refuseWith(status: number, answer: { readonly contentType: string; readonly body: string }): void {
    this.#response.writeHead(status, { "content-type": answer.contentType }).end(answer.body);
  }

  #open(index: number): void {
    if (this.#opened.has(index)) return;
    if (this.#form.greeting !== undefined && this.#opened.size === 0) this.raw(this.#form.greeting);
    this.#opened.add(index);
    if (this.#form.opening) this.#chunk({ index, delta: this.#form.opening, finishReason: null });
  }

  #chunk(told: Parameters<ChatForm["choice"]>[0]): void {
    this.event(this.#form.chunk(this.#model, [this.#form.choice(told)]));
  }
}

function wantsUsage(body: FakeRequest["body"]): boolean {
  const options = body["stream_options"];
  return (
    typeof options === "object" && options !== null && "include_usage" in options && options.include_usage === true
  );
}
