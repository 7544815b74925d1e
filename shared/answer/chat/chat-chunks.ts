import type { AnswerEvent } from "../answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "../answer-renderer.ts";
import { tokenUsage } from "../token-usage.ts";

/** Events that a chunk can carry; a chat has no embeddings. */
type Said = Exclude<AnswerEvent, { kind: "usage" | "embedding" }>;

/**
 * Renders a chat completion as a stream: server-sent events with `chat.completion.chunk` objects. The gateway writes
 * `data: [DONE]`, once it knows that nothing is missing.
 *
 * Only the varying parts of a chunk are built anew: this runs for every token.
 */
export class ChatChunks implements AnswerRenderer {
  readonly #open: string;
  /** The beginning of a chunk of the first choice, which is nearly always the only one. */
  readonly #openFirst: string;
  readonly #close: string;
  /** The end of a chunk without logprobs and without a finish reason. */
  readonly #closePlain: string;
  readonly #includeUsage: boolean;
  /** True if the first choice has begun; and the numbers of the other choices that have begun. */
  #firstBegun = false;
  #othersBegun: Set<number> | undefined;

  constructor(head: AnswerHead) {
    const { id, createdSeconds: created, model } = head;
    const constant = JSON.stringify({ id, object: "chat.completion.chunk", created, model });
    this.#open = `data: ${constant.slice(0, -1)},"choices":[`;
    this.#close = head.includeUsage ? `],"usage":null}\n\n` : `]}\n\n`;
    this.#openFirst = `${this.#open}{"index":0,"delta":`;
    this.#closePlain = `,"logprobs":null,"finish_reason":null}${this.#close}`;
    this.#includeUsage = head.includeUsage;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    let text = "";
    for (const event of events) text += this.#chunk(event);
    return Buffer.from(text);
  }

  end(): Uint8Array {
    return new Uint8Array();
  }

  #chunk(event: AnswerEvent): string {
    if (event.kind === "embedding") return "";
    if (event.kind === "usage") {
      return this.#includeUsage ? `${this.#open}],"usage":${JSON.stringify(tokenUsage(event))}}\n\n` : "";
    }
    const choice = event.choice ?? 0;
    return this.#begin(choice) + this.#following(choice, event);
  }

  /** Returns the first chunk of a choice, or an empty text when the choice has begun. */
  #begin(choice: number): string {
    if (choice === 0 ? this.#firstBegun : this.#othersBegun?.has(choice)) return "";
    if (choice === 0) this.#firstBegun = true;
    else this.#othersBegun = (this.#othersBegun ?? new Set()).add(choice);
    return this.#delta(choice, `{"role":"assistant","content":"","refusal":null}`);
  }

  #following(choice: number, event: Said): string {
    switch (event.kind) {
      case "text":
        return this.#delta(choice, `{"content":${JSON.stringify(event.text)}}`, ending(event));
      case "reasoning": {
        const text = JSON.stringify(event.text);
        return this.#delta(choice, `{"reasoning_content":${text},"reasoning":${text}}`);
      }
      case "tool-call-start": {
        const { index, id, name } = event;
        const call = { index, id, type: "function", function: { name, arguments: "" } };
        return this.#delta(choice, JSON.stringify({ tool_calls: [call] }));
      }
      case "tool-call-delta": {
        const call = { index: event.index, function: { arguments: event.arguments } };
        return this.#delta(choice, JSON.stringify({ tool_calls: [call] }));
      }
      case "finish":
        return this.#delta(choice, "{}", `,"logprobs":null,"finish_reason":"${event.reason}"}`);
    }
  }

  /** Returns a chunk with this delta. `told` replaces the fields after the delta. */
  #delta(choice: number, delta: string, told?: string): string {
    const open = choice === 0 ? this.#openFirst : `${this.#open}{"index":${choice},"delta":`;
    return told === undefined ? open + delta + this.#closePlain : open + delta + told + this.#close;
  }
}

function ending({ logprobs }: Extract<AnswerEvent, { kind: "text" }>): string | undefined {
  if (logprobs === undefined) return undefined;
  return `,"logprobs":${JSON.stringify({ content: logprobs, refusal: null })},"finish_reason":null}`;
}
