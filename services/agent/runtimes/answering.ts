import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { WrittenTexts } from "#shared/answer/written-texts.ts";

/** Who takes an answer as it comes. What is returned, if anything, is to be waited for before there is more. */
export interface AnswerTaker {
  events(events: readonly AnswerEvent[]): Promise<void> | undefined;
  /** The same as for an event for each of these texts, and progress by itself. Who does not have it is given events. */
  readonly texts?: ((texts: WrittenTexts) => Promise<void> | undefined) | undefined;
}

/**
 * What a runtime says, for one reader, in batches. One that can hand its batches over as they come does so without a turn
 * of promises for each of them, which takes longer than what is done with most; it rejects as the iteration would throw,
 * after what was said before.
 */
export interface Answering extends AsyncIterable<readonly AnswerEvent[]> {
  handTo?(taker: AnswerTaker): Promise<void>;
}

/** Hands over all of an answer, by whichever of the two ways it has. */
export function handOver(answering: Answering, taker: AnswerTaker): Promise<void> {
  return answering.handTo === undefined ? handOverEach(answering, taker) : answering.handTo(taker);
}

async function handOverEach(batches: AsyncIterable<readonly AnswerEvent[]>, taker: AnswerTaker): Promise<void> {
  for await (const events of batches) {
    const room = taker.events(events);
    if (room !== undefined) await room;
  }
}
