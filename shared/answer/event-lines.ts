import type { AnswerEvent } from "./answer-event.ts";
import type { AnswerRenderer } from "./answer-renderer.ts";

/**
 * The answer events themselves, one JSON object a line: what a gateway asks for when it knows a shape that the agent
 * does not, and renders on its own.
 */
export class EventLines implements AnswerRenderer {
  push(events: readonly AnswerEvent[]): Uint8Array {
    return Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  }

  end(): Uint8Array {
    return new Uint8Array();
  }
}
