import type { AnswerEvent, FinishReason, Usage } from "../answer-event.ts";
import { insistOnLength } from "../answer-length.ts";
import type { AnswerHead, AnswerRenderer } from "../answer-renderer.ts";
import { tokenUsage } from "../token-usage.ts";
import { LegacyLogprobs } from "./legacy-logprobs.ts";
import { textFinish } from "./text-chunks.ts";

const nothing = new Uint8Array();

interface Choice {
  text: string;
  logprobs: LegacyLogprobs | undefined;
  reason: FinishReason;
}

/** A legacy completion as one `text_completion` object: the same events as a stream's, folded. */
export class TextCompletion implements AnswerRenderer {
  readonly #head: AnswerHead;
  readonly #choices = new Map<number, Choice>();
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
    const choices = [...this.#choices]
      .toSorted(([a], [b]) => a - b)
      .map(([index, { text, logprobs = null, reason }]) => {
        return { text, index, logprobs, finish_reason: textFinish(reason) };
      });
    return Buffer.from(
      JSON.stringify({ id, object: "text_completion", created, model, choices, usage: tokenUsage(this.#usage) }),
    );
  }

  #fold(event: AnswerEvent): void {
    switch (event.kind) {
      case "text": {
        const choice = this.#choiceOf(event.choice);
        if (event.logprobs !== undefined) {
          choice.logprobs ??= new LegacyLogprobs();
          choice.logprobs.add(event.logprobs, choice.text.length);
          this.#characters += JSON.stringify(event.logprobs).length;
        }
        choice.text += event.text;
        this.#characters += event.text.length;
        return;
      }
      case "finish":
        this.#choiceOf(event.choice).reason = event.reason;
        return;
      case "usage": {
        const { kind: _, ...usage } = event;
        this.#usage = usage;
        return;
      }
      default:
    }
  }

  #choiceOf(index = 0): Choice {
    return this.#choices.getOrInsertComputed(index, () => ({ text: "", logprobs: undefined, reason: "stop" }));
  }
}
