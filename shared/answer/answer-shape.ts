import type { AnswerEvent } from "./answer-event.ts";
import { ChatChunks } from "./chat-chunks.ts";
import { ChatCompletion } from "./chat-completion.ts";
import { EventLines } from "./event-lines.ts";

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
  /** The last bytes, after the last event. */
  end(): Uint8Array;
}

/** The shapes that this build renders, by the name that jobs and presence carry. A new shape is one more line. */
const renderers = {
  "chat-stream": (head: AnswerHead): AnswerRenderer => new ChatChunks(head),
  "chat-whole": (head: AnswerHead): AnswerRenderer => new ChatCompletion(head),
  events: (): AnswerRenderer => new EventLines(),
} as const;

export type AnswerShape = keyof typeof renderers;

export const answerShapes = Object.freeze(Object.keys(renderers));

export function rendererFor(shape: string, head: AnswerHead): AnswerRenderer | undefined {
  return Object.hasOwn(renderers, shape) ? renderers[shape as AnswerShape](head) : undefined;
}
