import type { z } from "zod";
import { capabilities, model } from "#shared/protocol/model.ts";
import { toolCall } from "#shared/protocol/job-bodies.ts";
import { outerMessage, chatRequest, outerResponseFormat } from "../apis/chat/chat-request.ts";
import { completionRequest, embeddingsRequest } from "../apis/completions/text-requests.ts";
import * as media from "../apis/media/media-request.ts";
import { rerankRequest, scoreRequest } from "../apis/ranking/rerank-request.ts";
import * as responses from "../apis/responses/response-schema.ts";
import * as ollama from "../apis/ollama/ollama-schema.ts";
import * as messages from "../apis/messages/message-schema.ts";
import { chatTool } from "../chats/custom-tools.ts";
import { outerToolChoice } from "../chats/request-tools.ts";
import * as answers from "./answer-schemas.ts";
import * as ollamaAnswers from "./ollama-schemas.ts";
import * as messageAnswers from "./message-schemas.ts";

const [systemMessage, developerMessage, userMessage, assistantMessage, toolMessage] = outerMessage.options;

/** All named schemas of the public API. Requests use the schemas that also validate them. */
export const publicSchemas = {
  ...named({ chatRequest, completionRequest, embeddingsRequest, rerankRequest, scoreRequest }),
  ...named(responses, "responseRequest", "conversationRequest", "conversationItemsRequest"),
  ...named(messages, "messageRequest", "countedMessage"),
  ...named(media, "transcriptionRequest", "translationRequest", "speechRequest", "imageRequest", "imageEditRequest"),
  ...named(media, "moderationRequest", "tokenizeRequest", "detokenizeRequest"),
  ...named(ollama, "ollamaChatRequest", "ollamaShowRequest"),
  OllamaPromptRequest: ollama.ollamaGenerateRequest,
  OllamaTextsRequest: ollama.ollamaEmbedRequest,
  OllamaTextRequest: ollama.ollamaEmbeddingsRequest,

  ChatMessage: outerMessage,
  ...named({ systemMessage, developerMessage, userMessage, assistantMessage, toolMessage, toolCall }),
  Tool: chatTool,
  ToolChoice: outerToolChoice,
  ResponseFormat: outerResponseFormat,

  InputMessage: responses.messageItem,
  InputReasoning: responses.reasoningItem,
  InputFunctionCall: responses.callItem,
  InputCustomCall: responses.customCallItem,
  InputFunctionCallOutput: responses.callOutputItem,
  TextFormat: responses.outerTextFormat,
  ...named(responses, "inputItem", "responseTool", "functionTool", "customTool", "namespaceTool", "responseToolChoice"),

  MessageTurn: messages.message,
  ...named(messages, "imageBlock", "documentBlock", "searchResultBlock", "toolResultBlock", "thinkingBlock"),
  ...named(messages, "toolUseBlock", "messageTool", "clientTool", "messageToolChoice", "outputFormat"),
  ...named(ollama, "ollamaMessage"),

  ...named(answers),
  ...named(messageAnswers),
  ...named(ollamaAnswers),
  ...named({ model, capabilities }),
} as const;

export type SchemaName = keyof typeof publicSchemas;

/**
 * Returns schemas by the names that they have in the document, with a capital letter. All of them are returned if no
 * name is given.
 */
function named<Name extends string, Schemas extends Readonly<Record<Name, z.ZodType>>>(
  schemas: Schemas,
  ...names: Name[]
) {
  const entries = Object.entries(schemas).filter(([name]) => names.length === 0 || names.some((each) => each === name));
  const capitalized = entries.map(([name, schema]) => [name.charAt(0).toUpperCase() + name.slice(1), schema]);
  return Object.fromEntries(capitalized) as { [Key in keyof Schemas & Name as Capitalize<Key>]: Schemas[Key] };
}
