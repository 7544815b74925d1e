import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "../../jobs/render-answer.ts";
import type { Fault } from "#shared/fault/fault.ts";
import { faultBody } from "../../http/fault-body.ts";
import { ResponseOutput } from "./response-output.ts";
import type { ResponseTerms } from "./response-terms.ts";
import { begun, writtenResponse } from "./written-response.ts";

/**
 * Renders a response as a stream of named server-sent events, each with a sequence number. This API has no `data:
 * [DONE]`.
 */
export class ResponseStream implements AnswerRenderer {
  readonly #head: AnswerHead;
  readonly #terms: ResponseTerms;
  readonly #output: ResponseOutput;
  #written = "";
  #number = 0;

  constructor(head: AnswerHead, terms: ResponseTerms) {
    this.#head = head;
    this.#terms = terms;
    this.#output = new ResponseOutput((type, fields) => this.#tell(type, JSON.stringify(fields)), terms);
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    if (events.length > 0) this.#begin();
    for (const event of events) this.#output.take(event);
    return this.#taken();
  }

  end(): Uint8Array {
    this.#begin();
    const answer = this.#output.end();
    this.#tellResponse(`response.${answer.status}`, answer);
    return this.#taken();
  }

  /** Returns the event of an answer that failed midway. */
  failed(fault: Fault): Uint8Array {
    const { error } = faultBody(fault);
    const { code, message, param } = error;
    this.#tell("error", JSON.stringify({ code, message, param, error }));
    return this.#taken();
  }

  #begin(): void {
    if (this.#number > 0) return;
    this.#tellResponse("response.created", begun);
    this.#tellResponse("response.in_progress", begun);
  }

  #tellResponse(type: string, answer: Parameters<typeof writtenResponse>[2]): void {
    this.#tell(type, `{"response":${writtenResponse(this.#head, this.#terms, answer)}}`);
  }

  #tell(type: string, fields: string): void {
    const number = this.#number++;
    this.#written += `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},${fields.slice(1)}\n\n`;
  }

  #taken(): Uint8Array {
    const bytes = Buffer.from(this.#written);
    this.#written = "";
    return bytes;
  }
}
