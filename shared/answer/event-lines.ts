import type { AnswerEvent } from "./answer-event.ts";
import type { AnswerRenderer } from "./answer-renderer.ts";

/**
 * Renders the answer events themselves, one JSON object a line. A gateway requests this shape when the agent does not
 * know the client's shape, and renders that shape itself.
 */
export class EventLines implements AnswerRenderer {
  push(events: readonly AnswerEvent[]): Uint8Array {
    return Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  }

  end(): Uint8Array {
    return new Uint8Array();
  }
}
