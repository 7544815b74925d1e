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
  ChatRequest: chatRequest,
  ResponseRequest: responses.responseRequest,
  ConversationRequest: responses.conversationRequest,
  ConversationItemsRequest: responses.conversationItemsRequest,
  MessageRequest: messages.messageRequest,
  CompletionRequest: completionRequest,
  EmbeddingsRequest: embeddingsRequest,
  RerankRequest: rerankRequest,
  ScoreRequest: scoreRequest,
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
  ToolCall: toolCall,
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

  ChatCompletion: answers.chatCompletion,
  ChatCompletionChunk: answers.chatCompletionChunk,
  Response: answers.response,
  Conversation: answers.conversation,
  DeletedConversation: answers.deletedConversation,
  DeletedResponse: answers.deletedResponse,
  ResponseItemList: answers.responseItemList,
  ResponseEvent: answers.responseEvent,
  OutputItem: answers.outputItem,
  OutputMessage: answers.outputMessage,
  OutputReasoning: answers.outputReasoning,
  OutputFunctionCall: answers.outputCall,
  OutputCustomCall: answers.outputCustomCall,
  ResponseLogprob: answers.responseLogprob,
  Message: messageAnswers.message,
  MessageEvent: messageAnswers.messageEvent,
  ContentBlock: messageAnswers.contentBlock,
  TokenCount: messageAnswers.tokenCount,
  TextCompletion: answers.textCompletion,
  TextCompletionChunk: answers.textCompletionChunk,
  EmbeddingList: answers.embeddingList,
  Embedding: answers.embedding,
  Ranking: answers.ranking,
  ScoreList: answers.scoreList,
  Transcription: answers.transcription,
  TranscriptionEvent: answers.transcriptionEvent,
  ImageList: answers.imageList,
  ModerationList: answers.moderationList,
  TokenList: answers.tokenList,
  DetokenizedText: answers.detokenizedText,
  TokenUsage: answers.tokenUsage,
  TokenLogprob: answers.tokenLogprob,
  TextLogprobs: answers.textLogprobs,

  OllamaChatAnswer: ollamaAnswers.ollamaChatAnswer,
  OllamaPromptAnswer: ollamaAnswers.ollamaPromptAnswer,
  OllamaVectors: ollamaAnswers.ollamaVectors,
  OllamaVector: ollamaAnswers.ollamaVector,
  OllamaModels: ollamaAnswers.ollamaModels,
  OllamaShown: ollamaAnswers.ollamaShown,
  OllamaVersion: ollamaAnswers.ollamaVersionAnswer,

  ModelList: answers.modelList,
  Model: model,
  Capabilities: capabilities,
  MessageModelPage: messageAnswers.messageModelPage,
  MessageModel: messageAnswers.messageModel,

  Error: answers.errorAnswer,
  MessageError: messageAnswers.messageError,
  OllamaError: ollamaAnswers.ollamaError,
  Health: answers.health,
  Readiness: answers.readinessAnswer,
} as const;

export type SchemaName = keyof typeof publicSchemas;
