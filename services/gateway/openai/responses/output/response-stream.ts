import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "#shared/answer/answer-renderer.ts";
import { Fault } from "#shared/fault/fault.ts";
import { faultBody } from "../../fault-body.ts";
import { ResponseOutput } from "./response-output.ts";
import type { ResponseTerms } from "../response-terms.ts";
import { charactersSaid } from "./characters-said.ts";
import { begun, writtenResponse } from "./written-response.ts";

/** How long an answer may be that is streamed, since each of its texts comes four times more at its end. */
export const streamedResponseCharactersMax = 512 * 1024;

/** A response as a stream: server-sent events with names, each with its number. Without `data: [DONE]`, which is none. */
export class ResponseStream implements AnswerRenderer {
  readonly #head: AnswerHead;
  readonly #terms: ResponseTerms;
  readonly #output: ResponseOutput;
  #written = "";
  #number = 0;
  #characters = 0;

  constructor(head: AnswerHead, terms: ResponseTerms) {
    this.#head = head;
    this.#terms = terms;
    this.#output = new ResponseOutput((type, fields) => this.#tell(type, JSON.stringify(fields)), terms);
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    if (events.length > 0) this.#begin();
    for (const event of events) {
      this.#output.take(event);
      this.#characters += charactersSaid(event);
    }
    if (this.#characters > streamedResponseCharactersMax) throw tooLong();
    return this.#taken();
  }

  end(): Uint8Array {
    this.#begin();
    const answer = this.#output.end();
    this.#tellResponse(`response.${answer.status}`, answer);
    return this.#taken();
  }

  /** What tells that the answer broke off. */
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

function tooLong(): Fault {
  return new Fault("invalid_value", {
    message: `The answer is longer than ${streamedResponseCharactersMax} characters (streamedResponseCharactersMax), all of which a streamed response repeats at its end; ask for it whole, or at /v1/chat/completions.`,
    param: "stream",
  });
}
