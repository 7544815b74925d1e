import type { MediaAnswer } from "./media/media-request.ts";
import { renderMedia } from "./media/render-media.ts";
import { renderMessage } from "./messages/render-message.ts";
import type { OllamaTerms } from "./ollama/ollama-request.ts";
import { renderOllama } from "./ollama/render-ollama.ts";
import { chatCompletion, ChatChunks, endsOfChunks, type Rendering } from "./chat/render-chat.ts";
import { customChoice, CustomChatChunks } from "./chat/render-custom-chat.ts";
import { embeddingList } from "./embeddings/render-embeddings.ts";
import { rankingBy, scoredDocuments, scoreList } from "./ranking/render-ranking.ts";
import { textCompletion, TextChunks } from "./completions/render-text.ts";
import type { RankingTerms } from "./ranking/rerank-request.ts";
import { renderResponse } from "./responses/render-response.ts";
import type { ResponseTerms } from "./responses/response-request.ts";
import { faultWithSentNames, type SentNames } from "../chats/runtime-fields.ts";

/** The form of an answer: its API, and what an answer of that API repeats of its request or is told by it. */
export type AnswerForm =
  | { readonly api: "chat" | "text" | "message" | "scores" }
  | { readonly api: "custom-chat"; readonly custom: ReadonlySet<string> }
  | { readonly api: "embeddings"; readonly format: "float" | "base64" }
  | { readonly api: "ranking"; readonly terms: RankingTerms | undefined }
  | { readonly api: "response"; readonly terms: ResponseTerms }
  | { readonly api: "ollama"; readonly terms: OllamaTerms }
  | { readonly api: "media"; readonly answer: MediaAnswer };

/** The beginnings of answers' ids. */
export const idPrefixes = {
  chat: "chatcmpl-",
  "custom-chat": "chatcmpl-",
  text: "cmpl-",
  message: "msg_",
  response: "resp_",
  embeddings: "embd-",
  ranking: "rerank-",
  scores: "score-",
  ollama: "ollama-",
  media: "media-",
} as const satisfies Record<AnswerForm["api"], string>;

interface RenderedFor {
  readonly streamed: boolean;
  readonly requestId: string;
  /** The client's names of fields that machines get under another name. */
  readonly sentNames?: SentNames | undefined;
}

/** Returns the rendering of an answer for its API. */
export function renderingOf(form: AnswerForm, { streamed, requestId, sentNames = {} }: RenderedFor): Rendering {
  const plain = (render: Rendering["render"]): Rendering => {
    return { render, ends: endsOfChunks, adaptFault: (fault) => faultWithSentNames(fault, sentNames) };
  };
  switch (form.api) {
    case "chat":
      return plain((head) => (streamed ? new ChatChunks(head) : chatCompletion(head)));
    case "custom-chat":
      return plain((head) =>
        streamed ? new CustomChatChunks(head, form.custom) : chatCompletion(head, () => customChoice(form.custom)),
      );
    case "text":
      return plain((head) => (streamed ? new TextChunks(head) : textCompletion(head)));
    case "embeddings":
      return plain((head) => embeddingList(head, form.format));
    case "ranking":
      return plain((head) => scoredDocuments(head, rankingBy(form.terms)));
    case "scores":
      return plain((head) => scoredDocuments(head, scoreList));
    case "message":
      return renderMessage({ streamed, requestId });
    case "response":
      return renderResponse(form.terms, { streamed });
    case "ollama":
      return renderOllama(form.terms, { streamed });
    case "media":
      return renderMedia(form.answer);
  }
}
