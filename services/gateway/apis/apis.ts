import type { FaultShape } from "../http/request-state.ts";
import type { Api } from "./api.ts";
import { api as chat } from "./chat/api.ts";
import { api as responses } from "./responses/api.ts";
import { api as messages } from "./messages/api.ts";
import { api as completions } from "./completions/api.ts";
import { api as embeddings } from "./embeddings/api.ts";
import { api as ranking } from "./ranking/api.ts";
import { api as media } from "./media/api.ts";
import { api as tokens } from "./tokens/api.ts";
import { api as models } from "./models/api.ts";
import { api as ollama } from "./ollama/api.ts";

/** All outer APIs, the most used first. */
export const apis: readonly Api[] = [
  chat,
  responses,
  messages,
  completions,
  embeddings,
  ranking,
  media,
  tokens,
  models,
  ollama,
];

/** The shapes of errors of those that have another one than OpenAI's. */
export const faultShapes: readonly FaultShape[] = apis.flatMap(({ faults }) => faults ?? []);
