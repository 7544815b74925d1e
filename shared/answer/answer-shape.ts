import type { AnswerHead, AnswerRenderer } from "./answer-renderer.ts";
import { ChatChunks } from "./chat/chat-chunks.ts";
import { ChatCompletion } from "./chat/chat-completion.ts";
import { EmbeddingList } from "./embedding/embedding-list.ts";
import { EventLines } from "./event-lines.ts";

/** The shapes that this build renders, by the name that jobs and presence carry. A new shape is one more line. */
const renderers = {
  "chat-stream": (head: AnswerHead): AnswerRenderer => new ChatChunks(head),
  "chat-whole": (head: AnswerHead): AnswerRenderer => new ChatCompletion(head),
  "embeddings-float": (head: AnswerHead): AnswerRenderer => new EmbeddingList(head, "float"),
  "embeddings-base64": (head: AnswerHead): AnswerRenderer => new EmbeddingList(head, "base64"),
  events: (): AnswerRenderer => new EventLines(),
} as const;

export type AnswerShape = keyof typeof renderers;

export const answerShapes = Object.freeze(Object.keys(renderers));

export function rendererFor(shape: string, head: AnswerHead): AnswerRenderer | undefined {
  return Object.hasOwn(renderers, shape) ? renderers[shape as AnswerShape](head) : undefined;
}
