import type { AnswerHead, AnswerRenderer } from "../jobs/render-answer.ts";
import { chatCompletion, ChatChunks } from "./render-chat.ts";
import { EmbeddingList } from "./render-embeddings.ts";
import { textCompletion, TextChunks } from "./render-text.ts";

/** The shapes of answers, by name. A response is rendered with its request's terms: see `openai/responses/output`. */
const shapes = {
  "chat-stream": (head) => new ChatChunks(head),
  "chat-whole": chatCompletion,
  "text-stream": (head) => new TextChunks(head),
  "text-whole": textCompletion,
  "embeddings-float": (head) => new EmbeddingList(head, "float"),
  "embeddings-base64": (head) => new EmbeddingList(head, "base64"),
} as const satisfies Record<string, (head: AnswerHead) => AnswerRenderer>;

export type AnswerShape = keyof typeof shapes;

export const answerShapes = Object.freeze(Object.keys(shapes)) as readonly AnswerShape[];

export function rendererFor(shape: AnswerShape, head: AnswerHead): AnswerRenderer {
  return shapes[shape](head);
}
