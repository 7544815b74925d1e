import type { AnswerEvent } from "./answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "./answer-renderer.ts";
import { chatUsage } from "./chat-usage.ts";

/**
 * A chat completion as a stream: server-sent events with `chat.completion.chunk` objects. Without `data: [DONE]`,
 * which is the gateway's to write, once it knows that nothing is missing.
 *
 * Only the parts of a chunk that change are made anew for each: this runs for every token.
 */
export class ChatChunks implements AnswerRenderer {
  readonly #open: string;
  readonly #close: string;
  readonly #includeUsage: boolean;
  #begun = false;

  constructor(head: AnswerHead) {
    const { id, createdSeconds: created, model } = head;
    const constant = JSON.stringify({ id, object: "chat.completion.chunk", created, model });
    this.#open = `data: ${constant.slice(0, -1)},"choices":[`;
    this.#close = head.includeUsage ? `],"usage":null}\n\n` : `]}\n\n`;
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
    if (event.kind === "usage") {
      return this.#includeUsage ? `${this.#open}],"usage":${JSON.stringify(chatUsage(event))}}\n\n` : "";
    }
    const first = this.#begun ? "" : this.#delta(`{"role":"assistant","content":"","refusal":null}`, "null");
    this.#begun = true;
    return first + this.#following(event);
  }

  #following(event: Exclude<AnswerEvent, { kind: "usage" }>): string {
    switch (event.kind) {
      case "text":
        return this.#delta(`{"content":${JSON.stringify(event.text)}}`, "null");
      case "reasoning": {
        const text = JSON.stringify(event.text);
        return this.#delta(`{"reasoning_content":${text},"reasoning":${text}}`, "null");
      }
      case "tool-call-start": {
        const { index, id, name } = event;
        const call = { index, id, type: "function", function: { name, arguments: "" } };
        return this.#delta(JSON.stringify({ tool_calls: [call] }), "null");
      }
      case "tool-call-delta": {
        const call = { index: event.index, function: { arguments: event.arguments } };
        return this.#delta(JSON.stringify({ tool_calls: [call] }), "null");
      }
      case "finish":
        return this.#delta("{}", JSON.stringify(event.reason));
    }
  }

  #delta(delta: string, finishReason: string): string {
    return `${this.#open}{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finishReason}}${this.#close}`;
  }
}
