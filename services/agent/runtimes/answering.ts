import type { AnswerEvent } from "#shared/answer/answer-event.ts";

/** Takes some events. What it returns, if anything, is to be waited for before there is more. */
export type EventTaker = (events: readonly AnswerEvent[]) => Promise<void> | undefined;

/**
 * What a runtime says, for one reader, in batches. One that can hand its batches over as they come does so without a turn
 * of promises for each of them, which takes longer than what is done with most; it rejects as the iteration would throw,
 * after what was said before.
 */
export interface Answering extends AsyncIterable<readonly AnswerEvent[]> {
  handTo?(take: EventTaker): Promise<void>;
}

/** Hands over all of an answer, by whichever of the two ways it has. */
export async function handOver(answering: Answering, take: EventTaker): Promise<void> {
  if (answering.handTo !== undefined) return answering.handTo(take);
  for await (const events of answering) {
    const room = take(events);
    if (room !== undefined) await room;
  }
}
