import { toolCall, toolDefinition } from "#shared/protocol/chat-body.ts";
import { capabilities, model } from "#shared/model/model.ts";
import { outerMessage } from "../openai/chat-message.ts";
import { chatRequest } from "../openai/chat-request.ts";
import { completionRequest } from "../openai/completion-request.ts";
import { embeddingsRequest } from "../openai/embeddings-request.ts";
import { outerResponseFormat } from "../openai/response-format.ts";
import { outerToolChoice } from "../openai/tool-choice.ts";
import { tokenLogprob, tokenUsage } from "./answers/answer-parts.ts";
import { chatCompletion, chatCompletionChunk } from "./answers/chat-answer.ts";
import { embedding, embeddingList } from "./answers/embedding-answer.ts";
import { errorAnswer } from "./answers/error-answer.ts";
import { health, modelList, readinessTold } from "./answers/standing-answer.ts";
import { textCompletion, textCompletionChunk, textLogprobs } from "./answers/text-answer.ts";

const [systemMessage, developerMessage, userMessage, assistantMessage, toolMessage] = outerMessage.options;

/** Everything that has a name in the public API. Requests are of the very schemas that they are read with. */
export const publicSchemas = {
  ChatRequest: chatRequest,
  CompletionRequest: completionRequest,
  EmbeddingsRequest: embeddingsRequest,

  ChatMessage: outerMessage,
  SystemMessage: systemMessage,
  DeveloperMessage: developerMessage,
  UserMessage: userMessage,
  AssistantMessage: assistantMessage,
  ToolMessage: toolMessage,
  Tool: toolDefinition,
  ToolChoice: outerToolChoice,
  ToolCall: toolCall,
  ResponseFormat: outerResponseFormat,

  ChatCompletion: chatCompletion,
  ChatCompletionChunk: chatCompletionChunk,
  TextCompletion: textCompletion,
  TextCompletionChunk: textCompletionChunk,
  EmbeddingList: embeddingList,
  Embedding: embedding,
  TokenUsage: tokenUsage,
  TokenLogprob: tokenLogprob,
  TextLogprobs: textLogprobs,

  ModelList: modelList,
  Model: model,
  Capabilities: capabilities,

  Error: errorAnswer,
  Health: health,
  Readiness: readinessTold,
} as const;

export type SchemaName = keyof typeof publicSchemas;
