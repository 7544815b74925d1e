import type { AnswerEvent, Usage } from "./answer-event.ts";
import { insistOnLength } from "./answer-length.ts";
import type { AnswerHead, AnswerRenderer } from "./answer-renderer.ts";
import { tokenUsage } from "./token-usage.ts";

/** What a choice is made of. */
export type Said = Exclude<AnswerEvent, { kind: "usage" | "embedding" }>;

/** One choice of an answer that is gathered. */
export interface FoldedChoice {
  /** Takes an event, and tells how many characters it was of. */
  fold(event: Said): number;
  /** The choice as its clients know it. */
  told(index: number): object;
}

const nothing = new Uint8Array();

/** An answer of choices as one object: the same events as a stream's, folded. */
export class WholeCompletion<Choice extends FoldedChoice> implements AnswerRenderer {
  readonly #object: string;
  readonly #head: AnswerHead;
  readonly #begin: () => Choice;
  readonly #choices = new Map<number, Choice>();
  #characters = 0;
  #usage: Usage = { promptTokens: 0, completionTokens: 0 };

  constructor(head: AnswerHead, of: { readonly object: string; readonly begin: () => Choice }) {
    this.#head = head;
    this.#object = of.object;
    this.#begin = of.begin;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    for (const event of events) this.#fold(event);
    insistOnLength(this.#characters);
    return nothing;
  }

  end(): Uint8Array {
    const { id, createdSeconds: created, model } = this.#head;
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b).map(([index, choice]) => choice.told(index));
    const usage = tokenUsage(this.#usage);
    return Buffer.from(JSON.stringify({ id, object: this.#object, created, model, choices, usage }));
  }

  #fold(event: AnswerEvent): void {
    if (event.kind === "embedding") return;
    if (event.kind === "usage") {
      const { kind: _, ...usage } = event;
      this.#usage = usage;
      return;
    }
    this.#characters += this.#choices.getOrInsertComputed(event.choice ?? 0, this.#begin).fold(event);
  }
}
