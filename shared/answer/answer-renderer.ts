import type { AnswerEvent } from "./answer-event.ts";

/** The metadata of an answer, in every shape. */
export interface AnswerHead {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  /** True if the client asked for usage as a chunk of its own; streams only. */
  readonly includeUsage: boolean;
}

/** Renders the normalised events of one answer as the bytes for its client. */
export interface AnswerRenderer {
  /** Returns the bytes for these events; empty when the shape writes nothing before the end. */
  push(events: readonly AnswerEvent[]): Uint8Array;
  /** Returns the last bytes, after the last event. */
  end(): Uint8Array;
}
