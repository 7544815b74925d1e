import type { AnswerEvent } from "./answer-event.ts";
import type { WrittenTexts } from "./written-texts.ts";

/** What an answer says about itself, whatever its shape. */
export interface AnswerHead {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  /** On streams: whether the client asked for the usage as a chunk of its own. */
  readonly includeUsage: boolean;
}

/** Turns the regular events of one answer into the bytes that a client is to be sent. */
export interface AnswerRenderer {
  /** The bytes for these events; empty when the shape says nothing before the end. */
  push(events: readonly AnswerEvent[]): Uint8Array;
  /**
   * The bytes for these texts, exactly as `push` would give them for as many events, and before them so many bytes that
   * are anybody's. A shape without this has to be given the events.
   */
  pushWritten?(texts: WrittenTexts, room: number): Uint8Array;
  /** The last bytes, after the last event. */
  end(): Uint8Array;
}
