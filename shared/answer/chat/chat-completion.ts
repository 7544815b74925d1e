import type { AnswerEvent, Usage } from "../answer-event.ts";
import { insistOnLength } from "../answer-length.ts";
import type { AnswerHead, AnswerRenderer } from "../answer-renderer.ts";
import { ChatChoice } from "./chat-choice.ts";
import { tokenUsage } from "../token-usage.ts";

const nothing = new Uint8Array();

/** A chat completion as one `chat.completion` object: the same events as a stream's, folded. */
export class ChatCompletion implements AnswerRenderer {
  readonly #head: AnswerHead;
  readonly #choices = new Map<number, ChatChoice>();
  #characters = 0;
  #usage: Usage = { promptTokens: 0, completionTokens: 0 };

  constructor(head: AnswerHead) {
    this.#head = head;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    for (const event of events) this.#fold(event);
    insistOnLength(this.#characters);
    return nothing;
  }

  end(): Uint8Array {
    const { id, createdSeconds: created, model } = this.#head;
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b).map(([index, choice]) => choice.told(index));
    return Buffer.from(
      JSON.stringify({ id, object: "chat.completion", created, model, choices, usage: tokenUsage(this.#usage) }),
    );
  }

  #fold(event: AnswerEvent): void {
    if (event.kind === "embedding") return;
    if (event.kind === "usage") {
      const { kind: _, ...usage } = event;
      this.#usage = usage;
      return;
    }
    this.#characters += this.#choices.getOrInsertComputed(event.choice ?? 0, () => new ChatChoice()).fold(event);
  }
}
