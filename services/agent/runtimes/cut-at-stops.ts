import type { AnswerEvent, Usage } from "#shared/answer/answer-event.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import { estimateTokens } from "./context-overflow.ts";
import { StopCutter } from "./stop-cutter.ts";

type Batches = AsyncIterable<readonly AnswerEvent[]>;

/**
 * What an answer has taken, by a rule of thumb for its prompt, where a runtime will not tell any more because the answer
 * was ended before its end.
 */
export function estimatedUsage(body: ChatBody, completionTokens: number): Usage {
  return { promptTokens: estimateTokens(body), completionTokens };
}

/**
 * Ends a single answer exactly before the first stop string in its text, for a runtime that does not do so itself. The
 * runtime's own end is then not waited for, nor what it would say of the usage.
 */
export async function* cutAtStops(body: ChatBody, batches: Batches): AsyncGenerator<readonly AnswerEvent[]> {
  const cutter = new StopCutter(body.stop ?? []);
  let pieces = 0;
  for await (const events of batches) {
    const kept: AnswerEvent[] = [];
    for (const event of events) {
      if (event.kind === "text" || event.kind === "reasoning") pieces += 1;
      kept.push(...cutEvent(event, cutter));
      if (!cutter.stopped) continue;
      yield [...kept, { kind: "finish", reason: "stop" }, { kind: "usage", ...estimatedUsage(body, pieces) }];
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
