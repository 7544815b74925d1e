import type { JobKind } from "../protocol/job.ts";
import type { AnswerHead, AnswerRenderer } from "./answer-renderer.ts";
import { ChatChunks } from "./chat/chat-chunks.ts";
import { chatCompletion } from "./chat/chat-completion.ts";
import { EmbeddingList } from "./embedding/embedding-list.ts";
import { EventLines } from "./event-lines.ts";
import { TextChunks } from "./text-completion/text-chunks.ts";
import { textCompletion } from "./text-completion/text-completion.ts";

/** Kinds of jobs that a model answers. */
type AnsweredKind = Extract<JobKind, "chat" | "complete" | "embed">;

interface Shape {
  readonly of: readonly AnsweredKind[];
  readonly render: (head: AnswerHead) => AnswerRenderer;
}

/** The shapes that this build renders, by the name that jobs and presence carry. A new shape is one more line. */
const shapes = {
  "chat-stream": { of: ["chat"], render: (head) => new ChatChunks(head) },
  "chat-whole": { of: ["chat"], render: chatCompletion },
  "text-stream": { of: ["complete"], render: (head) => new TextChunks(head) },
  "text-whole": { of: ["complete"], render: textCompletion },
  "embeddings-float": { of: ["embed"], render: (head) => new EmbeddingList(head, "float") },
  "embeddings-base64": { of: ["embed"], render: (head) => new EmbeddingList(head, "base64") },
  events: { of: ["chat", "complete", "embed"], render: () => new EventLines() },
} as const satisfies Record<string, Shape>;

export type AnswerShape = keyof typeof shapes;

/** The shape to request from an agent that does not know the client's shape. The gateway then renders the answer. */
export const eventsShape: AnswerShape = "events";

export const answerShapes = Object.freeze(Object.keys(shapes));

export function rendererFor(shape: string, head: AnswerHead): AnswerRenderer | undefined {
  return shapeNamed(shape)?.render(head);
}

/** Returns true if a job of this kind can be answered in this shape. */
export function canAnswer(kind: JobKind, shape: string): boolean {
  return shapeNamed(shape)?.of.some((each) => each === kind) ?? false;
}

function shapeNamed(name: string): Shape | undefined {
  return Object.hasOwn(shapes, name) ? shapes[name as AnswerShape] : undefined;
}
