import { reads as chat } from "./chat/chat-request.ts";
import { reads as responses } from "./responses/response-request.ts";
import { reads as messages } from "./messages/message-request.ts";
import { reads as completions } from "./completions/completion-request.ts";
import { reads as embeddings } from "./embeddings/embeddings-request.ts";
import { reads as ranking } from "./ranking/rerank-request.ts";
import { reads as media } from "./media/media-request.ts";
import { reads as tokens } from "./tokens/token-request.ts";
import { reads as ollama } from "./ollama/ollama-request.ts";
import type { Reads } from "../requests/read-request.ts";

/** The readers of all APIs. Reading threads load them too. */
export const reads: Reads = {
  ...chat,
  ...responses,
  ...messages,
  ...completions,
  ...embeddings,
  ...ranking,
  ...media,
  ...tokens,
  ...ollama,
};

/** The module of a reading thread. */
export const readingThread = new URL("./reading-thread.ts", import.meta.url);
