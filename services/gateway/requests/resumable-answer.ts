import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { IncomingHttpHeaders } from "node:http";
import type { AnswerRenderer, AnswerTimings } from "../jobs/answer-parts.ts";
import type { JobOffer } from "../jobs/answer-parts.ts";
import { answerNotFound } from "../jobs/machine-fault.ts";
import { type AnswerJob, type AnswerPosition, eventId, readEventId } from "../jobs/resume-answer.ts";

/** Asks for a stream whose events have ids, so that its client can resume it; the answer has it too, if it can be. */
export const resumableHeader = "x-trunkline-resumable";
export const lastEventHeader = "last-event-id";

/** True if a request asks for an answer that can be resumed. */
export function asksResumable(headers: IncomingHttpHeaders): boolean {
  return headers[resumableHeader] === "1";
}

/** True if a request resumes an answer. Such a request runs no other job, whatever else it says. */
export function resumesAnswer(headers: IncomingHttpHeaders): boolean {
  return headers[lastEventHeader] !== undefined;
}

/** Returns the position after which a request resumes an answer. */
export function resumedPosition({ [lastEventHeader]: id }: IncomingHttpHeaders): AnswerPosition {
  if (id === lostId) throw answerNotFound();
  const position = typeof id === "string" ? readEventId(id) : undefined;
  if (position !== undefined) return position;
  const message =
    "The header 'Last-Event-ID' must be the id of an event that this site sent; without it the request asks for a new answer.";
  throw new Fault("invalid_value", { message, param: "Last-Event-ID" });
}

const nothing = new Uint8Array();
/** The id of events after which an answer cannot be resumed. */
const lostId = "none";

/**
 * Writes the events of a stream with ids, from the one after `skipped` on. The same answer has the same events at every
 * gateway, since its machine sends it again as it was.
 */
export class NumberedEvents implements AnswerRenderer {
  readonly #renderer: AnswerRenderer;
  readonly #skipped: number;
  readonly #job: AnswerJob;
  #hasMoved = false;
  #event = 0;

  constructor(renderer: AnswerRenderer, { job, chosen }: JobOffer, skipped = 0) {
    this.#renderer = renderer;
    this.#job = { machine: chosen.machine, job };
    this.#skipped = skipped;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    return this.#numbered(this.#renderer.push(events));
  }

  end(timings?: AnswerTimings): Uint8Array {
    return this.#numbered(this.#renderer.end(timings));
  }

  /** Ends the numbering: the machine that goes on has a part of the answer only, and the one before has another rest. */
  onMoved(): void {
    this.#hasMoved = true;
  }

  #numbered(bytes: Uint8Array): Uint8Array {
    if (bytes.byteLength === 0) return bytes;
    const events = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString().split("\n\n").slice(0, -1);
    let written = "";
    for (const event of events) {
      this.#event += 1;
      const id = this.#hasMoved ? lostId : eventId({ ...this.#job, event: this.#event });
      if (this.#event > this.#skipped) written += `id: ${id}\n${event}\n\n`;
    }
    return written === "" ? nothing : Buffer.from(written);
  }
}

/**
 * Returns a controller for a job that goes on without its client for `forMs`. It aborts then, and at once for any other
 * reason than that the client has left.
 */
export function staying(leaving: AbortSignal, forMs: number): AbortController {
  const stay = new AbortController();
  const leave = (): void => {
    const reason = Fault.from(leaving.reason);
    if (reason.code !== "client_closed" && reason.code !== "slow_client") stay.abort(reason);
    else setTimeout(() => stay.abort(reason), forMs).unref();
  };
  if (leaving.aborted) leave();
  else leaving.addEventListener("abort", leave, { once: true });
  return stay;
}
