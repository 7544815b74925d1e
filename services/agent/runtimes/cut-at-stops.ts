import type { AnswerEvent, Usage } from "#shared/answer/answer-event.ts";
import { StopCutter } from "./stop-cutter.ts";

type Batches = AsyncIterable<readonly AnswerEvent[]>;

/** The stop strings of an answer, and the estimated length of its prompt. */
interface Cut {
  readonly stop?: readonly string[] | undefined;
  readonly estimatedTokens: number;
}

/**
 * Ends a single answer exactly before its first stop string, for a runtime that does not do so itself. It does not wait
 * for the runtime's own end and usage; the usage is estimated instead.
 */
export async function* cutAtStops(
  { stop, estimatedTokens }: Cut,
  batches: Batches,
): AsyncGenerator<readonly AnswerEvent[]> {
  const cutter = new StopCutter(stop ?? []);
  let pieces = 0;
  for await (const events of batches) {
    const kept: AnswerEvent[] = [];
    for (const event of events) {
      if (event.kind === "text" || event.kind === "reasoning") pieces += 1;
      kept.push(...cutEvent(event, cutter));
      if (!cutter.stopped) continue;
      const usage: Usage = { promptTokens: estimatedTokens, completionTokens: pieces };
      yield [...kept, { kind: "finish", reason: "stop" }, { kind: "usage", ...usage }];
      return;
    }
    yield kept;
  }
}

/** Emits text that was held back as a possible beginning of a stop string, once another event follows. */
function* cutEvent(event: AnswerEvent, cutter: StopCutter): Generator<AnswerEvent> {
  const text = event.kind === "text" ? cutter.push(event.text) : event.kind === "reasoning" ? "" : cutter.end();
  if (text !== "") yield { kind: "text", text };
  if (event.kind !== "text") yield event;
}
