import type { AnswerEvent, Usage } from "#shared/answer/answer-event.ts";
import { StopCutter } from "./stop-cutter.ts";

type Batches = AsyncIterable<readonly AnswerEvent[]>;

/** Where an answer is to end, and how long its prompt is by a rule of thumb. */
interface Cut {
  readonly stop?: readonly string[] | undefined;
  readonly estimatedTokens: number;
}

/**
 * Ends a single answer exactly before the first stop string in its text, for a runtime that does not do so itself. The
 * runtime's own end is then not waited for, nor what it would say of the usage, which is estimated instead.
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

/** What is held back, since it could be the beginning of a stop string, is said once something else follows. */
function* cutEvent(event: AnswerEvent, cutter: StopCutter): Generator<AnswerEvent> {
  const text = event.kind === "text" ? cutter.push(event.text) : event.kind === "reasoning" ? "" : cutter.end();
  if (text !== "") yield { kind: "text", text };
  if (event.kind !== "text") yield event;
}
