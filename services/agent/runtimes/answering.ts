import type { AnswerEvent } from "#shared/answer/answer-event.ts";

/** Takes an answer as it comes. A returned promise must settle before the next call. */
export interface AnswerTaker {
  events(events: readonly AnswerEvent[]): Promise<void> | undefined;
}

/**
 * An answer of a runtime, for one reader, in batches. `handTo` passes each batch on without a promise turn. A turn
 * takes longer than the work on most batches. `handTo` rejects with the error that iteration would throw, after it
 * handed over the earlier batches.
 */
export interface Answering extends AsyncIterable<readonly AnswerEvent[]> {
  handTo?(taker: AnswerTaker): Promise<void>;
}

/** Hands over a whole answer: by `handTo` where the answer has it, by iteration otherwise. */
export function handOver(answering: Answering, taker: AnswerTaker): Promise<void> {
  return answering.handTo === undefined ? handOverEach(answering, taker) : answering.handTo(taker);
}

async function handOverEach(batches: AsyncIterable<readonly AnswerEvent[]>, taker: AnswerTaker): Promise<void> {
  for await (const events of batches) {
    const room = taker.events(events);
    if (room !== undefined) await room;
  }
}
