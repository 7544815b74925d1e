import type { z } from "zod";
import { capabilities, model } from "#shared/protocol/model.ts";
import { toolCall } from "#shared/protocol/job-bodies.ts";
import { outerMessage, chatRequest, outerResponseFormat } from "../api/chat-request.ts";
import { completionRequest, embeddingsRequest } from "../api/text-requests.ts";
import * as media from "../api/media/media-request.ts";
import { rerankRequest, scoreRequest } from "../api/rerank-request.ts";
import * as responses from "../api/responses/response-schema.ts";
import * as ollama from "../api/ollama/ollama-schema.ts";
import * as messages from "../api/messages/message-schema.ts";
import { outerToolChoice, outerTool } from "../api/request-tools.ts";
import * as answers from "./answer-schemas.ts";
import * as ollamaAnswers from "./ollama-schemas.ts";
import * as messageAnswers from "./message-schemas.ts";

const [systemMessage, developerMessage, userMessage, assistantMessage, toolMessage] = outerMessage.options;

/** All named schemas of the public API. Requests use the schemas that also validate them. */
export const publicSchemas = {
  ...byTypeName({ chatRequest, completionRequest, embeddingsRequest, rerankRequest, scoreRequest }),
  ResponseRequest: responses.responseRequest,
  ConversationRequest: responses.conversationRequest,
  ConversationItemsRequest: responses.conversationItemsRequest,
  MessageRequest: messages.messageRequest,
  TranscriptionRequest: media.transcriptionRequest,
  TranslationRequest: media.translationRequest,
  SpeechRequest: media.speechRequest,
  ImageRequest: media.imageRequest,
  ImageEditRequest: media.imageEditRequest,
  ModerationRequest: media.moderationRequest,
  TokenizeRequest: media.tokenizeRequest,
  DetokenizeRequest: media.detokenizeRequest,
  OllamaChatRequest: ollama.ollamaChatRequest,
  OllamaPromptRequest: ollama.ollamaGenerateRequest,
  OllamaTextsRequest: ollama.ollamaEmbedRequest,
  OllamaTextRequest: ollama.ollamaEmbeddingsRequest,
  OllamaShowRequest: ollama.ollamaShowRequest,

  ChatMessage: outerMessage,
  SystemMessage: systemMessage,
  DeveloperMessage: developerMessage,
  UserMessage: userMessage,
  AssistantMessage: assistantMessage,
  ToolMessage: toolMessage,
  Tool: outerTool,
  ToolChoice: outerToolChoice,
  ResponseFormat: outerResponseFormat,

  InputItem: responses.inputItem,
  InputMessage: responses.messageItem,
  InputReasoning: responses.reasoningItem,
  InputFunctionCall: responses.callItem,
  InputCustomCall: responses.customCallItem,
  InputFunctionCallOutput: responses.callOutputItem,
  ResponseTool: responses.responseTool,
  FunctionTool: responses.functionTool,
  CustomTool: responses.customTool,
  NamespaceTool: responses.namespaceTool,
  ResponseToolChoice: responses.responseToolChoice,
  TextFormat: responses.outerTextFormat,

  OllamaMessage: ollama.ollamaMessage,

  MessageTurn: messages.message,
  ImageBlock: messages.imageBlock,
  DocumentBlock: messages.documentBlock,
  SearchResultBlock: messages.searchResultBlock,
  ToolResultBlock: messages.toolResultBlock,
  ThinkingBlock: messages.thinkingBlock,
  ToolUseBlock: messages.toolUseBlock,
  MessageTool: messages.messageTool,
  ClientTool: messages.clientTool,
  MessageToolChoice: messages.messageToolChoice,
  OutputFormat: messages.outputFormat,

  ...byTypeName(answers),
  ...byTypeName(messageAnswers),
  ...byTypeName(ollamaAnswers),
  ...byTypeName({ toolCall, model, capabilities }),
} as const;

export type SchemaName = keyof typeof publicSchemas;

/** Returns schemas by their names, which begin with a capital letter in the document. */
function byTypeName<Schemas extends Readonly<Record<string, z.ZodType>>>(schemas: Schemas) {
  const named = Object.entries(schemas).map(([name, schema]) => [name.charAt(0).toUpperCase() + name.slice(1), schema]);
  return Object.fromEntries(named) as { [Name in keyof Schemas & string as Capitalize<Name>]: Schemas[Name] };
}
