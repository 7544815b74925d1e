import type { FinishReason } from "../answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "../answer-renderer.ts";
import { WholeCompletion, type FoldedChoice, type Said } from "../whole-completion.ts";
import { LegacyLogprobs } from "./legacy-logprobs.ts";
import { textFinish } from "./text-chunks.ts";

/** Renders a legacy completion as one `text_completion` object. */
export function textCompletion(head: AnswerHead): AnswerRenderer {
  return new WholeCompletion(head, { object: "text_completion", begin: () => new TextChoice() });
}

/** One choice of a legacy completion. */
class TextChoice implements FoldedChoice {
  #text = "";
  #logprobs: LegacyLogprobs | undefined;
  #reason: FinishReason = "stop";

  fold(event: Said): number {
    if (event.kind === "finish") this.#reason = event.reason;
    if (event.kind !== "text") return 0;
    const { text, logprobs } = event;
    const offset = this.#text.length;
    this.#text += text;
    if (logprobs === undefined) return text.length;
    this.#logprobs ??= new LegacyLogprobs();
    this.#logprobs.add(logprobs, offset);
    return text.length + JSON.stringify(logprobs).length;
  }

  told(index: number): object {
    return { text: this.#text, index, logprobs: this.#logprobs ?? null, finish_reason: textFinish(this.#reason) };
  }
}
