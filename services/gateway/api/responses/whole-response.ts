import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "../../jobs/render-answer.ts";
import { ResponseOutput } from "./response-output.ts";
import type { ResponseTerms } from "./response-terms.ts";
import { writtenResponse } from "./written-response.ts";

const nothing = new Uint8Array();

/** Renders a response as one JSON object. */
export class WholeResponse implements AnswerRenderer {
  readonly #head: AnswerHead;
  readonly #terms: ResponseTerms;
  readonly #output: ResponseOutput;

  constructor(head: AnswerHead, terms: ResponseTerms) {
    this.#head = head;
    this.#terms = terms;
    this.#output = new ResponseOutput(() => undefined, terms);
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    for (const event of events) this.#output.take(event);
    return nothing;
  }

  end(): Uint8Array {
    return Buffer.from(writtenResponse(this.#head, this.#terms, this.#output.end()));
  }
}
