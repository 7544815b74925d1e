import { capabilities, model } from "#shared/model/model.ts";
import { toolCall, toolDefinition } from "#shared/protocol/job-bodies.ts";
import { outerMessage } from "../api/chat-messages.ts";
import { chatRequest, outerResponseFormat } from "../api/chat-request.ts";
import { completionRequest, embeddingsRequest } from "../api/text-requests.ts";
import {
  callItem,
  callOutputItem,
  inputItem,
  messageItem,
  reasoningItem,
  functionTool,
  namespaceTool,
  responseTool,
  responseToolChoice,
  outerTextFormat,
  responseRequest,
} from "../api/responses/response-schema.ts";
import { outerToolChoice } from "../api/tool-choice.ts";
import {
  chatCompletion,
  chatCompletionChunk,
  embedding,
  embeddingList,
  errorAnswer,
  health,
  modelList,
  readinessTold,
  textCompletion,
  textCompletionChunk,
  textLogprobs,
  tokenLogprob,
  tokenUsage,
} from "./answer-schemas.ts";
import {
  outputCall,
  outputItem,
  outputMessage,
  outputReasoning,
  response,
  responseEvent,
  responseLogprob,
} from "./response-schemas.ts";

const [systemMessage, developerMessage, userMessage, assistantMessage, toolMessage] = outerMessage.options;

/** All named schemas of the public API. Requests use the schemas that also validate them. */
export const publicSchemas = {
  ChatRequest: chatRequest,
  ResponseRequest: responseRequest,
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

  InputItem: inputItem,
  InputMessage: messageItem,
  InputReasoning: reasoningItem,
  InputFunctionCall: callItem,
  InputFunctionCallOutput: callOutputItem,
  ResponseTool: responseTool,
  FunctionTool: functionTool,
  NamespaceTool: namespaceTool,
  ResponseToolChoice: responseToolChoice,
  TextFormat: outerTextFormat,

  ChatCompletion: chatCompletion,
  ChatCompletionChunk: chatCompletionChunk,
  Response: response,
  ResponseEvent: responseEvent,
  OutputItem: outputItem,
  OutputMessage: outputMessage,
  OutputReasoning: outputReasoning,
  OutputFunctionCall: outputCall,
  ResponseLogprob: responseLogprob,
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
