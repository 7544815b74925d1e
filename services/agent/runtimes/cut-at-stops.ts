import type { AnswerEvent, Usage } from "#shared/answer/answer-event.ts";
import type { EmitEvents } from "./runtime.ts";
import { StopCutter } from "./stop-cutter.ts";

/** The stop strings of an answer, and the estimated length of its prompt. */
interface Cut {
  readonly stop?: readonly string[] | undefined;
  readonly estimatedTokens: number;
}

/** Thrown into a run whose answer is complete at a stop string, so that the runtime's request ends. */
const stopped = new Error("the answer ended at a stop string");

/**
 * Ends a single answer exactly before its first stop string, for a runtime that does not do so itself. It does not wait
 * for the runtime's own end and usage; the usage is estimated instead.
 */
export async function cutAtStops(
  { stop, estimatedTokens }: Cut,
  run: (emit: EmitEvents) => Promise<void>,
  emit: EmitEvents,
): Promise<void> {
  const cutter = new StopCutter(stop ?? []);
  let pieces = 0;
  let kept: AnswerEvent[] = [];
  try {
    await run((events) => {
      kept = [];
      for (const event of events) {
        if (event.kind === "text" || event.kind === "reasoning") pieces += 1;
        kept.push(...cutEvent(event, cutter));
        if (cutter.stopped) throw stopped;
      }
      return emit(kept);
    });
  } catch (error) {
    if (error !== stopped) throw error;
    const usage: Usage = { promptTokens: estimatedTokens, completionTokens: pieces };
    await emit([...kept, { kind: "finish", reason: "stop" }, { kind: "usage", ...usage }]);
  }
}

/** Emits text that was held back as a possible beginning of a stop string, once another event follows. */
function* cutEvent(event: AnswerEvent, cutter: StopCutter): Generator<AnswerEvent> {
  const text = event.kind === "text" ? cutter.push(event.text) : event.kind === "reasoning" ? "" : cutter.end();
  if (text !== "") yield { kind: "text", text };
  if (event.kind !== "text") yield event;
}
