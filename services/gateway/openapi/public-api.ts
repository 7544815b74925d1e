import type { PublicCode } from "./public-faults.ts";
import type { AnswerHeaderName } from "./public-headers.ts";
import type { SchemaName } from "./public-schemas.ts";
import { itemsPageDefault, itemsPageMax } from "../api/responses/stored-endpoints.ts";
import {
  chatExamples,
  completionExamples,
  countExamples,
  embeddingsExamples,
  messageExamples,
  ollamaExamples,
  rerankExamples,
  imageExamples,
  speechExamples,
  responseExamples,
  scoreExamples,
  conversationExamples,
  conversationItemsExamples,
  moderationExamples,
  tokenizeExamples,
  detokenizeExamples,
} from "./request-examples.ts";

/** One operation of the public API, as its document describes it. */
export interface PublicOperation {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly tag:
    | "Chat"
    | "Responses"
    | "Messages"
    | "Completions"
    | "Embeddings"
    | "Rerank"
    | "Audio"
    | "Images"
    | "Moderations"
    | "Tokens"
    | "Models"
    | "Ollama"
    | "Health"
    | "Reference";
  readonly summary: string;
  readonly description: string;
  /** True if the operation needs no key. */
  readonly open: boolean;
  /** Descriptions of the path parameters. */
  readonly params?: Readonly<Record<string, string>>;
  /** Descriptions and schemas of the query's parameters. */
  readonly query?: Readonly<Record<string, { readonly description: string; readonly schema: object }>>;
  readonly body?: { readonly schema: SchemaName; readonly examples: object | "a form" };
  readonly answer: SchemaName | readonly SchemaName[] | { readonly media: string };
  /** The schema of one event when the answer is streamed. */
  readonly chunk?: SchemaName;
  /** The end of a successful stream: an event or a line of the answer's own, or `[DONE]`. */
  readonly endsBy?: "event" | "message" | "line" | "transcript" | "done";
  /** The shapes of its errors; OpenAI's unless given. */
  readonly errors?: readonly ("Error" | "MessageError" | "OllamaError")[];
  /** The answer of a status that is neither a success nor an error. */
  readonly otherwise?: { readonly status: number; readonly schema: SchemaName };
  readonly refusals: readonly PublicCode[];
  /** The headers of a successful answer, besides those of every successful answer. */
  readonly headers: readonly AnswerHeaderName[];
}

type Codes = readonly PublicCode[];

/** The faults of every operation. */
export const refusalsOfAll: Codes = [
  "bad_request",
  "uri_too_long",
  "expectation_failed",
  "headers_too_large",
  "internal_error",
  "shutting_down",
];

/** The faults of operations that require a key. */
const refusalsOfKeys: Codes = ["key_invalid", "key_expired", "auth_unavailable"];

const refusalsOfMachines: Codes = ["agent_offline", "runtime_offline", "backend_unavailable"];

/** The faults of the body of any request that becomes a job. */
const refusalsOfBodies: Codes = [
  "invalid_json",
  "missing_required_parameter",
  "invalid_type",
  "invalid_value",
  "integer_below_min_value",
  "integer_above_max_value",
  "string_too_long",
  "empty_array",
  "array_above_max_length",
  "unsupported_parameter",
  "unsupported_value",
  "request_timeout",
  "request_too_large",
  "unsupported_media_type",
];

/** The faults of any request for a model. */
const refusalsOfJobs: Codes = [
  ...refusalsOfKeys,
  ...refusalsOfBodies,
  "context_length_exceeded",
  "model_not_found",
  "rate_limit_requests",
  "rate_limit_tokens",
  "rate_limit_loads",
  "loads_not_allowed",
  "concurrency_limit_exceeded",
  "insufficient_quota",
  "upstream_error",
  "agent_disconnected",
  "poison_request",
  "stream_gap",
  ...refusalsOfMachines,
  "model_loading",
  "server_is_overloaded",
  "upstream_timeout",
];

const refusalsOfDecimals: Codes = ["decimal_below_min_value", "decimal_above_max_value"];

/** The faults of a request that is read as a chat. */
const refusalsOfChats: Codes = [
  ...refusalsOfJobs,
  ...refusalsOfDecimals,
  "tool_messages_out_of_order",
  "model_does_not_support_tools",
  "answer_not_found",
  "idempotency_key_reused",
  "idempotency_key_in_use",
  "idempotency_keys_used_up",
];

/** The faults of a request about speech or images. */
const refusalsOfMedia: Codes = [...refusalsOfJobs, ...refusalsOfDecimals, "insufficient_permissions"];

const asksModel = { method: "POST", open: false, headers: [] } as const;
const ofStored = {
  path: "/v1/responses/{id}",
  tag: "Responses",
  open: false,
  params: { id: "The response's id." },
  refusals: [...refusalsOfKeys, "response_not_found", "backend_unavailable"] as Codes,
  headers: [],
} as const;
/** The page of a list of items. */
const itemsQuery = {
  limit: {
    description: "Items on a page.",
    schema: { type: "integer", minimum: 1, maximum: itemsPageMax, default: itemsPageDefault },
  },
  order: {
    description: "`asc` for the first item first.",
    schema: { type: "string", enum: ["asc", "desc"], default: "desc" },
  },
  after: { description: "The id of the item before the page.", schema: { type: "string" } },
};
const ofConversation = {
  ...ofStored,
  path: "/v1/conversations/{id}",
  params: { id: "The conversation's id." },
} as const;
const open = { method: "GET", open: true, refusals: [], headers: [] } as const;
const asOllama = { tag: "Ollama", errors: ["OllamaError"] } as const;
const runsAsOllama = {
  ...asksModel,
  ...asOllama,
  endsBy: "line",
  refusals: [...refusalsOfJobs, ...refusalsOfDecimals] as Codes,
} as const;
const listsAsOllama = {
  ...asOllama,
  method: "GET",
  open: false,
  refusals: [...refusalsOfKeys, ...refusalsOfMachines],
  headers: [],
} as const;

/** All operations of the public port, the most used first. */
export const publicApi: Readonly<Record<string, PublicOperation>> = {
  createChatCompletion: {
    ...asksModel,
    path: "/v1/chat/completions",
    tag: "Chat",
    summary: "Have a model answer a conversation",
    description:
      "The answer comes whole, or with `stream` piece by piece. A client that closes the connection stops the model. What the model's runtime cannot honour is refused by name and never dropped in silence.",
    body: { schema: "ChatRequest", examples: chatExamples },
    answer: "ChatCompletion",
    chunk: "ChatCompletionChunk",
    refusals: refusalsOfChats,
  },
  createResponse: {
    ...asksModel,
    path: "/v1/responses",
    tag: "Responses",
    summary: "Have a model answer, in items and events",
    description:
      "The same as a chat, told in items and events, for clients that speak the Responses API. Where the operator stores the responses of the key, `previous_response_id` goes on from one, and an `item_reference` in `input` stands for an item of one. Otherwise send the whole conversation in `input`, with the items of earlier answers as they came. The tools are functions of your own.",
    body: { schema: "ResponseRequest", examples: responseExamples },
    answer: "Response",
    chunk: "ResponseEvent",
    endsBy: "event",
    refusals: [...refusalsOfChats, "response_not_found"],
  },
  retrieveResponse: {
    ...ofStored,
    method: "GET",
    summary: "Read a stored response",
    description: "As its client got it. It comes whole: `stream` is refused.",
    answer: "Response",
    refusals: [...ofStored.refusals, "unsupported_parameter"],
  },
  deleteResponse: {
    ...ofStored,
    method: "DELETE",
    summary: "Delete a stored response",
    description: "Responses that went on from it cannot be gone on from any more.",
    answer: "DeletedResponse",
  },
  listResponseItems: {
    ...ofStored,
    method: "GET",
    path: "/v1/responses/{id}/input_items",
    summary: "List the input of a stored response",
    description: "The items of that request alone, without those of earlier turns.",
    query: itemsQuery,
    answer: "ResponseItemList",
    refusals: [...ofStored.refusals, "invalid_value"],
  },
  createConversation: {
    ...ofConversation,
    method: "POST",
    path: "/v1/conversations",
    params: {},
    summary: "Begin a conversation",
    description:
      "Responses whose `conversation` names it go on from its items, and are put at its end. It is kept for as long as a response is, counted from its beginning. Only for keys whose responses are stored.",
    body: { schema: "ConversationRequest", examples: conversationExamples },
    answer: "Conversation",
    refusals: [
      ...refusalsOfKeys,
      ...refusalsOfBodies,
      "insufficient_permissions",
      "rate_limit_requests",
      "response_not_found",
      "backend_unavailable",
    ],
  },
  retrieveConversation: {
    ...ofConversation,
    method: "GET",
    summary: "Read a conversation",
    description: "Its items are at `/v1/conversations/{id}/items`.",
    answer: "Conversation",
  },
  deleteConversation: {
    ...ofConversation,
    method: "DELETE",
    summary: "Delete a conversation",
    description: "Its responses stay until they are deleted themselves.",
    answer: "DeletedConversation",
  },
  listConversationItems: {
    ...ofConversation,
    method: "GET",
    path: "/v1/conversations/{id}/items",
    summary: "List the items of a conversation",
    description: "Those that were put into it, and those of its responses.",
    query: itemsQuery,
    answer: "ResponseItemList",
    refusals: [...ofStored.refusals, "invalid_value", "array_above_max_length"],
  },
  createConversationItems: {
    ...ofConversation,
    method: "POST",
    path: "/v1/conversations/{id}/items",
    summary: "Put items at the end of a conversation",
    description: "Such as messages that no model is to answer.",
    body: { schema: "ConversationItemsRequest", examples: conversationItemsExamples },
    answer: "ResponseItemList",
    refusals: [...ofStored.refusals, ...refusalsOfBodies, "rate_limit_requests"],
  },
  createMessage: {
    ...asksModel,
    path: "/v1/messages",
    tag: "Messages",
    summary: "Have a model answer, for Anthropic's clients",
    description:
      "The same as a chat, for clients that speak the Messages API, such as Claude Code. Their base URL has no `/v1`. A key may be sent as `x-api-key`. No part of a prompt is charged or kept: `cache_control` means nothing, and a runtime caches by itself. The tools are your own: what Anthropic's servers run is not run here.",
    body: { schema: "MessageRequest", examples: messageExamples },
    answer: "Message",
    chunk: "MessageEvent",
    endsBy: "message",
    errors: ["MessageError"],
    headers: ["request-id"],
    refusals: refusalsOfChats,
  },
  countMessageTokens: {
    ...asksModel,
    path: "/v1/messages/count_tokens",
    tag: "Messages",
    summary: "Count the tokens of a request",
    description:
      "The request is not run, and takes one of the requests that its key may send a minute. A machine that would run it counts its prompt. Where the model server of that machine cannot count, or with images, the answer is an estimate from above, and `x-trunkline-estimate` says so.",
    body: { schema: "MessageRequest", examples: countExamples },
    answer: "TokenCount",
    errors: ["MessageError"],
    headers: ["request-id", "x-trunkline-estimate"],
    refusals: [
      ...refusalsOfKeys,
      ...refusalsOfBodies,
      ...refusalsOfDecimals,
      "model_not_found",
      "tool_messages_out_of_order",
      "model_does_not_support_tools",
      ...refusalsOfMachines,
      "concurrency_limit_exceeded",
      "rate_limit_requests",
      "insufficient_quota",
      "server_is_overloaded",
    ],
  },
  createCompletion: {
    ...asksModel,
    path: "/v1/completions",
    tag: "Completions",
    summary: "Have a model continue a text",
    description:
      "The older form: the text goes to the model as it is, without a template and without roles. For tools that complete code, and for base models.",
    body: { schema: "CompletionRequest", examples: completionExamples },
    answer: "TextCompletion",
    chunk: "TextCompletionChunk",
    refusals: [...refusalsOfJobs, ...refusalsOfDecimals],
  },
  createEmbedding: {
    ...asksModel,
    path: "/v1/embeddings",
    tag: "Embeddings",
    summary: "Make vectors of texts",
    description: "One vector for each text, in the order of the texts.",
    body: { schema: "EmbeddingsRequest", examples: embeddingsExamples },
    answer: "EmbeddingList",
    refusals: refusalsOfJobs,
  },
  rerank: {
    ...asksModel,
    path: "/v1/rerank",
    tag: "Rerank",
    summary: "Order documents by their relevance to a query",
    description:
      "The most relevant document comes first. Each model has a scale of its own for its scores. The path `/rerank` is the same.",
    body: { schema: "RerankRequest", examples: rerankExamples },
    answer: "Ranking",
    refusals: refusalsOfJobs,
  },
  score: {
    ...asksModel,
    path: "/v1/score",
    tag: "Rerank",
    summary: "Score texts by their relevance to another text",
    description:
      "The scores of `/v1/rerank` in the order of the texts, in the shape of vLLM's API. Each text of `text_2` is scored with the one of `text_1`.",
    body: { schema: "ScoreRequest", examples: scoreExamples },
    answer: "ScoreList",
    refusals: refusalsOfJobs,
  },
  createTranscription: {
    ...asksModel,
    path: "/v1/audio/transcriptions",
    tag: "Audio",
    summary: "Write down what is said in a recording",
    description:
      "The recording goes to the model's server as it is, and the answer comes back as that server tells it. A key with a limit in tokens is refused, since the servers count none.",
    body: { schema: "TranscriptionRequest", examples: "a form" },
    answer: "Transcription",
    chunk: "TranscriptionEvent",
    endsBy: "transcript",
    refusals: refusalsOfMedia,
  },
  createTranslation: {
    ...asksModel,
    path: "/v1/audio/translations",
    tag: "Audio",
    summary: "Write down in English what is said in a recording",
    description: "The same as a transcription, for models that translate.",
    body: { schema: "TranslationRequest", examples: "a form" },
    answer: "Transcription",
    refusals: refusalsOfMedia,
  },
  createSpeech: {
    ...asksModel,
    path: "/v1/audio/speech",
    tag: "Audio",
    summary: "Speak a text",
    description:
      "The audio comes piece by piece, with the media type that the model's server tells. A failure in between cuts the connection.",
    body: { schema: "SpeechRequest", examples: speechExamples },
    answer: { media: "audio/mpeg" },
    refusals: refusalsOfMedia,
  },
  createImage: {
    ...asksModel,
    path: "/v1/images/generations",
    tag: "Images",
    summary: "Make images of a text",
    description: "The images come whole, as the model's server gives them.",
    body: { schema: "ImageRequest", examples: imageExamples },
    answer: "ImageList",
    refusals: refusalsOfMedia,
  },
  createImageEdit: {
    ...asksModel,
    path: "/v1/images/edits",
    tag: "Images",
    summary: "Make images of other images",
    description: "The same, with one image or several to begin with.",
    body: { schema: "ImageEditRequest", examples: "a form" },
    answer: "ImageList",
    refusals: refusalsOfMedia,
  },
  createModeration: {
    ...asksModel,
    path: "/v1/moderations",
    tag: "Moderations",
    summary: "Judge whether texts are harmful",
    description: "The judgement of the model's server, as that server tells it.",
    body: { schema: "ModerationRequest", examples: moderationExamples },
    answer: "ModerationList",
    refusals: [...refusalsOfJobs, "insufficient_permissions"],
  },
  tokenize: {
    ...asksModel,
    path: "/tokenize",
    tag: "Tokens",
    summary: "Tell the tokens of a text",
    description: "In the shape of vLLM's API, from vLLM and llama-server. It takes no tokens of the key's limits.",
    body: { schema: "TokenizeRequest", examples: tokenizeExamples },
    answer: "TokenList",
    refusals: refusalsOfJobs,
  },
  detokenize: {
    ...asksModel,
    path: "/detokenize",
    tag: "Tokens",
    summary: "Tell the text of tokens",
    description: "The opposite of `/tokenize`.",
    body: { schema: "DetokenizeRequest", examples: detokenizeExamples },
    answer: "DetokenizedText",
    refusals: refusalsOfJobs,
  },
  listModels: {
    method: "GET",
    path: "/v1/models",
    tag: "Models",
    open: false,
    summary: "List the models that the key may use",
    description:
      "Every machine is asked at this moment, so this is also the health check: 200 means that the site and a machine are both well. With `anthropic-version` the list has the shape of the Messages API, and `limit`, `after_id` and `before_id` of the query choose a page.",
    answer: ["ModelList", "MessageModelPage"],
    errors: ["Error", "MessageError"],
    refusals: [...refusalsOfKeys, ...refusalsOfMachines],
    headers: ["x-trunkline-unanswered"],
  },
  retrieveModel: {
    method: "GET",
    path: "/v1/models/{id}",
    tag: "Models",
    open: false,
    summary: "Look one model up",
    description: "What `GET /v1/models` says of it, if it is there.",
    params: { id: "The model's id. A `:` or `/` in it stands as it is or percent-encoded." },
    answer: ["Model", "MessageModel"],
    errors: ["Error", "MessageError"],
    refusals: [...refusalsOfKeys, ...refusalsOfMachines, "model_not_found"],
    headers: [],
  },
  ollamaChat: {
    ...runsAsOllama,
    path: "/api/chat",
    summary: "Have a model answer, for Ollama's clients",
    description:
      "The same as a chat, for clients that speak Ollama's API. Their base URL is the address without `/v1`. Any model answers, whatever serves it. `keep_alive`, `num_ctx` and other settings of the machine are ignored by name, and no prompt is cut. Models are pulled, copied and removed by the operator, so those routes answer 403.",
    body: { schema: "OllamaChatRequest", examples: ollamaExamples.chat },
    answer: "OllamaChatAnswer",
    chunk: "OllamaChatAnswer",
    refusals: [...runsAsOllama.refusals, "tool_messages_out_of_order", "model_does_not_support_tools"],
  },
  ollamaGenerate: {
    ...runsAsOllama,
    path: "/api/generate",
    summary: "Have a model answer one prompt",
    description:
      "The prompt is one message of a chat. With `raw` or `suffix` it goes to the model as it is. `template` and `context` are refused.",
    body: { schema: "OllamaPromptRequest", examples: ollamaExamples.generate },
    answer: "OllamaPromptAnswer",
    chunk: "OllamaPromptAnswer",
  },
  ollamaEmbed: {
    ...runsAsOllama,
    path: "/api/embed",
    summary: "Make vectors of texts",
    description: "One vector for each text, in their order. No text is cut: one that is too long is an error.",
    body: { schema: "OllamaTextsRequest", examples: ollamaExamples.embed },
    answer: "OllamaVectors",
  },
  ollamaEmbeddings: {
    ...runsAsOllama,
    path: "/api/embeddings",
    summary: "Make the vector of one text",
    description: "The older form of `/api/embed`.",
    body: { schema: "OllamaTextRequest", examples: ollamaExamples.embeddings },
    answer: "OllamaVector",
  },
  ollamaTags: {
    ...listsAsOllama,
    path: "/api/tags",
    summary: "List the models that the key may use",
    description: "The same models as of `GET /v1/models`, each with a tag.",
    answer: "OllamaModels",
  },
  ollamaLoaded: {
    ...listsAsOllama,
    path: "/api/ps",
    summary: "List the models in memory",
    description: "Of the models that the key may use, those that a machine reports to have in its memory.",
    answer: "OllamaModels",
  },
  ollamaShow: {
    ...listsAsOllama,
    method: "POST",
    path: "/api/show",
    summary: "Look one model up",
    description: "Its capabilities, and its context window in `model_info`.",
    body: { schema: "OllamaShowRequest", examples: ollamaExamples.show },
    answer: "OllamaShown",
    refusals: [...listsAsOllama.refusals, ...refusalsOfBodies, "model_not_found"],
  },
  ollamaVersion: {
    ...listsAsOllama,
    path: "/api/version",
    summary: "Read the version of Ollama's API",
    description: "Clients compare it before they use a newer feature.",
    answer: "OllamaVersion",
    refusals: refusalsOfKeys,
  },
  getHealth: {
    ...open,
    path: "/healthz",
    tag: "Health",
    summary: "See that this gateway runs",
    description: "Asks no machine and no store.",
    answer: "Health",
  },
  getReadiness: {
    ...open,
    path: "/readyz",
    tag: "Health",
    summary: "See whether this gateway can serve",
    description: "For balancers. Machines are not asked: a gateway is not taken out because they are away.",
    answer: "Readiness",
    otherwise: { status: 503, schema: "Readiness" },
  },
  getOpenApi: {
    ...open,
    path: "/openapi.json",
    tag: "Reference",
    summary: "Read this document",
    description: "OpenAPI 3.1, written from the schemas that requests are read with.",
    answer: { media: "application/json" },
  },
  getDocs: {
    ...open,
    path: "/docs",
    tag: "Reference",
    summary: "Read it as a page",
    description: "One page for people, made of the document.",
    answer: { media: "text/html" },
  },
};
