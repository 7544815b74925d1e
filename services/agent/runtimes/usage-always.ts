import type { AnswerEvent } from "#shared/answer/answer-event.ts";

/** Adds an estimated usage to an answer whose runtime does not report it. */
export async function* usageAlways(
  { estimatedTokens }: { readonly estimatedTokens: number },
  batches: AsyncIterable<readonly AnswerEvent[]>,
): AsyncGenerator<readonly AnswerEvent[]> {
  let pieces = 0;
  let isTold = false;
  for await (const events of batches) {
    for (const { kind } of events) {
      if (kind === "text") pieces += 1;
      if (kind === "usage") isTold = true;
    }
    yield events;
  }
  if (!isTold) yield [{ kind: "usage", promptTokens: estimatedTokens, completionTokens: pieces }];
}
