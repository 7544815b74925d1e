import { faultsOf, type PublicCode } from "./public-faults.ts";
import type { AnswerHeaderName } from "./public-headers.ts";
import type { SchemaName } from "./public-schemas.ts";
import { itemsPageDefault, itemsPageMax } from "../apis/responses/stored-endpoints.ts";

/** A section of the public API. Its operations share what is told here. */
export interface PublicSection {
  readonly description: string;
  /** The beginnings of its operations' paths. */
  readonly paths: readonly string[];
  /** True if its operations need no key. */
  readonly open?: boolean;
  /** The shapes of its errors; OpenAI's unless given. */
  readonly errors?: readonly ("Error" | "MessageError" | "OllamaError")[];
  /** The end of a successful stream: an event or a line of the answer's own, or `[DONE]` unless given. */
  readonly endsBy?: "event" | "message" | "line" | "transcript";
}

/** One operation of the public API, as its document describes it. */
export interface PublicOperation {
  /** POST with a body and GET without one, unless given. */
  readonly method?: "DELETE";
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** Descriptions of the path parameters. */
  readonly params?: Readonly<Record<string, string>>;
  /** Descriptions and schemas of the query's parameters. */
  readonly query?: Readonly<Record<string, { readonly description: string; readonly schema: object }>>;
  readonly body?: SchemaName;
  readonly answer: SchemaName | readonly SchemaName[] | { readonly media: string };
  /** The schema of one event when the answer is streamed. */
  readonly chunk?: SchemaName;
  /** The answer of a status that is neither a success nor an error. */
  readonly otherwise?: { readonly status: number; readonly schema: SchemaName };
  /** The faults of this operation, besides those of all operations, of keys and of bodies. */
  readonly refusals: readonly PublicCode[];
  /** The headers of a successful answer, besides those of every successful answer of its section. */
  readonly headers?: readonly AnswerHeaderName[];
}

/** The sections of the public API by the names of their tags, the most used first. */
export const sections: Readonly<Record<string, PublicSection>> = {
  Chat: { paths: ["/v1/chat/"], description: "Conversations with a model." },
  Responses: {
    paths: ["/v1/responses", "/v1/conversations"],
    endsBy: "event",
    description: "The same in items and events, as OpenAI has them now.",
  },
  Messages: {
    paths: ["/v1/messages"],
    errors: ["MessageError"],
    endsBy: "message",
    description: "The same for clients of Anthropic's.",
  },
  Completions: { paths: ["/v1/completions"], description: "Texts that a model continues." },
  Embeddings: { paths: ["/v1/embeddings"], description: "Vectors of texts." },
  Rerank: { paths: ["/v1/rerank", "/v1/score"], description: "Documents in the order of their relevance." },
  Audio: {
    paths: ["/v1/audio/"],
    endsBy: "transcript",
    description: "Speech that is written down, and texts that are spoken.",
  },
  Images: { paths: ["/v1/images/"], description: "Images of texts and of other images." },
  Moderations: { paths: ["/v1/moderations"], description: "Judgements of texts." },
  Tokens: { paths: ["/tokenize", "/detokenize"], description: "Tokens of texts, and texts of tokens." },
  Models: { paths: ["/v1/models"], errors: ["Error", "MessageError"], description: "The models that a key may ask." },
  Ollama: {
    paths: ["/api/"],
    errors: ["OllamaError"],
    endsBy: "line",
    description: "The same for clients of Ollama's.",
  },
  Health: { paths: ["/health", "/readyz"], open: true, description: "For balancers, without a key." },
  Reference: {
    paths: ["/openapi.json", "/docs"],
    open: true,
    description: "The description of this API, without a key.",
  },
};

const refusalsOfMachines = faultsOf("machines");
const refusalsOfStored: readonly PublicCode[] = [
  "response_not_found",
  "backend_unavailable",
  "rate_limit_requests",
  "server_is_overloaded",
];
const refusalsOfCounts: readonly PublicCode[] = [
  ...faultsOf("decimals", "tools", "machines"),
  "model_not_found",
  "concurrency_limit_exceeded",
  "rate_limit_requests",
  "insufficient_quota",
  "server_is_overloaded",
];
const refusalsOfJobs = faultsOf("machines", "jobs");
/** The faults of a request for a model with settings that are decimals. */
const refusalsOfSettings = faultsOf("machines", "jobs", "decimals");
const refusalsOfChats = faultsOf("machines", "jobs", "decimals", "tools", "repeats");
/** The faults of a request about speech or images. */
const refusalsOfMedia: readonly PublicCode[] = [...refusalsOfSettings, "insufficient_permissions"];

const ofResponse = { path: "/v1/responses/{id}", params: { id: "The response's id." } };
const ofConversation = { path: "/v1/conversations/{id}", params: { id: "The conversation's id." } };

const ofConversationItem = {
  path: "/v1/conversations/{id}/items/{item}",
  params: { ...ofConversation.params, item: "The item's id." },
};

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

/** All operations of the public port, the most used first. */
export const publicApi = {
  createChatCompletion: {
    path: "/v1/chat/completions",
    summary: "Have a model answer a conversation",
    description:
      "The answer comes whole, or with `stream` piece by piece. A client that closes the connection stops the model. What the model's runtime cannot honour is refused by name and never dropped in silence.",
    body: "ChatRequest",
    answer: "ChatCompletion",
    chunk: "ChatCompletionChunk",
    refusals: refusalsOfChats,
  },
  createResponse: {
    path: "/v1/responses",
    summary: "Have a model answer, in items and events",
    description:
      "The same as a chat, told in items and events, for clients that speak the Responses API. Where the operator stores the responses of the key, `previous_response_id` goes on from one, and an `item_reference` in `input` stands for an item of one. Otherwise send the whole conversation in `input`, with the items of earlier answers as they came. The tools are functions of your own.",
    body: "ResponseRequest",
    answer: "Response",
    chunk: "ResponseEvent",
    refusals: [...refusalsOfChats, "response_not_found"],
  },
  countResponseTokens: {
    path: "/v1/responses/input_tokens",
    summary: "Count the tokens of a request",
    description: "As `/v1/messages/count_tokens` does, for a request of the Responses API.",
    body: "ResponseRequest",
    answer: "ResponseTokenCount",
    headers: ["x-trunkline-estimate"],
    refusals: [...refusalsOfCounts, "response_not_found"],
  },
  retrieveResponse: {
    ...ofResponse,
    summary: "Read a stored response",
    description: "As its client got it. It comes whole: `stream` is refused.",
    answer: "Response",
    refusals: [...refusalsOfStored, "unsupported_parameter"],
  },
  deleteResponse: {
    ...ofResponse,
    method: "DELETE",
    summary: "Delete a stored response",
    description: "Responses that went on from it cannot be gone on from any more.",
    answer: "DeletedResponse",
    refusals: refusalsOfStored,
  },
  listResponseItems: {
    ...ofResponse,
    path: "/v1/responses/{id}/input_items",
    summary: "List the input of a stored response",
    description: "The items of that request alone, without those of earlier turns.",
    query: itemsQuery,
    answer: "ResponseItemList",
    refusals: [...refusalsOfStored, "invalid_value"],
  },
  createConversation: {
    path: "/v1/conversations",
    summary: "Begin a conversation",
    description:
      "Responses whose `conversation` names it go on from its items, and are put at its end. It is kept for as long as a response is, counted from its beginning. Only for keys whose responses are stored.",
    body: "ConversationRequest",
    answer: "Conversation",
    refusals: ["insufficient_permissions", "insufficient_quota", ...refusalsOfStored],
  },
  retrieveConversation: {
    ...ofConversation,
    summary: "Read a conversation",
    description: "Its items are at `/v1/conversations/{id}/items`.",
    answer: "Conversation",
    refusals: refusalsOfStored,
  },
  deleteConversation: {
    ...ofConversation,
    method: "DELETE",
    summary: "Delete a conversation",
    description: "Its responses stay until they are deleted themselves.",
    answer: "DeletedConversation",
    refusals: refusalsOfStored,
  },
  listConversationItems: {
    ...ofConversation,
    path: "/v1/conversations/{id}/items",
    summary: "List the items of a conversation",
    description:
      "Those that were put into it, and those of its responses. A page may have fewer than `limit` where they are large: `has_more` says so.",
    query: itemsQuery,
    answer: "ResponseItemList",
    refusals: [...refusalsOfStored, "invalid_value"],
  },
  createConversationItems: {
    ...ofConversation,
    path: "/v1/conversations/{id}/items",
    summary: "Put items at the end of a conversation",
    description: "Such as messages that no model is to answer.",
    body: "ConversationItemsRequest",
    answer: "ResponseItemList",
    refusals: [...refusalsOfStored, "insufficient_quota"],
  },
  retrieveConversationItem: {
    ...ofConversationItem,
    summary: "Read an item of a conversation",
    description: "One that was put into it, or one of its responses.",
    answer: "InputItem",
    refusals: refusalsOfStored,
  },
  deleteConversationItem: {
    ...ofConversationItem,
    method: "DELETE",
    summary: "Delete an item of a conversation",
    description:
      "The conversation goes on without it. The response that it came with keeps it until that is deleted. A deletion takes one of the places for turns (`storedTurnsMax`).",
    answer: "Conversation",
    refusals: [...refusalsOfStored, "array_above_max_length", "insufficient_quota"],
  },
  createMessage: {
    path: "/v1/messages",
    summary: "Have a model answer, for Anthropic's clients",
    description:
      "The same as a chat, for clients that speak the Messages API, such as Claude Code. Their base URL has no `/v1`. A key may be sent as `x-api-key`. No part of a prompt is charged or kept: `cache_control` means nothing, and a runtime caches by itself. The tools are your own: what Anthropic's servers run is not run here.",
    body: "MessageRequest",
    answer: "Message",
    chunk: "MessageEvent",
    refusals: refusalsOfChats,
  },
  countMessageTokens: {
    path: "/v1/messages/count_tokens",
    summary: "Count the tokens of a request",
    description:
      "The request is not run, and takes one of the requests that its key may send a minute. A machine that would run it counts its prompt. Where the model server of that machine cannot count, or with images, the answer is an estimate from above, and `x-trunkline-estimate` says so.",
    body: "CountedMessage",
    answer: "TokenCount",
    headers: ["x-trunkline-estimate"],
    refusals: refusalsOfCounts,
  },
  createCompletion: {
    path: "/v1/completions",
    summary: "Have a model continue a text",
    description:
      "The older form: the text goes to the model as it is, without a template and without roles. For tools that complete code, and for base models.",
    body: "CompletionRequest",
    answer: "TextCompletion",
    chunk: "TextCompletionChunk",
    refusals: refusalsOfSettings,
  },
  createEmbedding: {
    path: "/v1/embeddings",
    summary: "Make vectors of texts",
    description: "One vector for each text, in the order of the texts.",
    body: "EmbeddingsRequest",
    answer: "EmbeddingList",
    refusals: refusalsOfJobs,
  },
  rerank: {
    path: "/v1/rerank",
    summary: "Order documents by their relevance to a query",
    description:
      "The most relevant document comes first. Each model has a scale of its own for its scores. The paths `/rerank` and, for clients of Cohere's, `/v2/rerank` are the same.",
    body: "RerankRequest",
    answer: "Ranking",
    refusals: refusalsOfJobs,
  },
  score: {
    path: "/v1/score",
    summary: "Score texts by their relevance to another text",
    description:
      "The scores of `/v1/rerank` in the order of the texts, in the shape of vLLM's API. Each text of `text_2` is scored with the one of `text_1`.",
    body: "ScoreRequest",
    answer: "ScoreList",
    refusals: refusalsOfJobs,
  },
  createTranscription: {
    path: "/v1/audio/transcriptions",
    summary: "Write down what is said in a recording",
    description:
      "The recording goes to the model's server as it is, and the answer comes back as that server tells it. A key with a limit in tokens is refused, since the servers count none.",
    body: "TranscriptionRequest",
    answer: "Transcription",
    chunk: "TranscriptionEvent",
    refusals: refusalsOfMedia,
  },
  createTranslation: {
    path: "/v1/audio/translations",
    summary: "Write down in English what is said in a recording",
    description: "The same as a transcription, for models that translate.",
    body: "TranslationRequest",
    answer: "Transcription",
    refusals: refusalsOfMedia,
  },
  createSpeech: {
    path: "/v1/audio/speech",
    summary: "Speak a text",
    description:
      'The audio comes piece by piece, with the media type that the model\'s server tells. A failure in between cuts the connection. With `stream_format: "sse"` the pieces are events, whose last is `speech.audio.done`.',
    body: "SpeechRequest",
    answer: { media: "audio/mpeg" },
    chunk: "SpeechEvent",
    refusals: refusalsOfMedia,
  },
  createImage: {
    path: "/v1/images/generations",
    summary: "Make images of a text",
    description: "The images come whole, as the model's server gives them.",
    body: "ImageRequest",
    answer: "ImageList",
    refusals: refusalsOfMedia,
  },
  createImageEdit: {
    path: "/v1/images/edits",
    summary: "Make images of other images",
    description: "The same, with one image or several to begin with.",
    body: "ImageEditRequest",
    answer: "ImageList",
    refusals: refusalsOfMedia,
  },
  createModeration: {
    path: "/v1/moderations",
    summary: "Judge whether texts and images are harmful",
    description:
      "The judgement of the model's server, as that server tells it. Without `model` it is `omni-moderation-latest`: let a route of that name lead to your model.",
    body: "ModerationRequest",
    answer: "ModerationList",
    refusals: [...refusalsOfJobs, "insufficient_permissions"],
  },
  tokenize: {
    path: "/tokenize",
    summary: "Tell the tokens of a text",
    description: "In the shape of vLLM's API, from vLLM and llama-server. It takes no tokens of the key's limits.",
    body: "TokenizeRequest",
    answer: "TokenList",
    refusals: refusalsOfJobs,
  },
  detokenize: {
    path: "/detokenize",
    summary: "Tell the text of tokens",
    description: "The opposite of `/tokenize`.",
    body: "DetokenizeRequest",
    answer: "DetokenizedText",
    refusals: refusalsOfJobs,
  },
  listModels: {
    path: "/v1/models",
    summary: "List the models that the key may use",
    description:
      "Every machine is asked at this moment, so this is also the health check: 200 means that the site and a machine are both well. With `anthropic-version` the list has the shape of the Messages API, and `limit`, `after_id` and `before_id` of the query choose a page.",
    answer: ["ModelList", "MessageModelPage"],
    refusals: refusalsOfMachines,
    headers: ["x-trunkline-unanswered"],
  },
  retrieveModel: {
    path: "/v1/models/{id}",
    summary: "Look one model up",
    description: "What `GET /v1/models` says of it, if it is there.",
    params: { id: "The model's id. A `:` or `/` in it stands as it is or percent-encoded." },
    answer: ["Model", "MessageModel"],
    refusals: [...refusalsOfMachines, "model_not_found"],
  },
  ollamaChat: {
    path: "/api/chat",
    summary: "Have a model answer, for Ollama's clients",
    description:
      "The same as a chat, for clients that speak Ollama's API. Their base URL is the address without `/v1`. Any model answers, whatever serves it. `keep_alive`, `num_ctx` and other settings of the machine are ignored by name, and no prompt is cut. Models are pulled, copied and removed by the operator, so those routes answer 403.",
    body: "OllamaChatRequest",
    answer: "OllamaChatAnswer",
    chunk: "OllamaChatAnswer",
    refusals: faultsOf("machines", "jobs", "decimals", "tools"),
  },
  ollamaGenerate: {
    path: "/api/generate",
    summary: "Have a model answer one prompt",
    description:
      "The prompt is one message of a chat. With `raw` or `suffix` it goes to the model as it is. `template` and `context` are refused.",
    body: "OllamaPromptRequest",
    answer: "OllamaPromptAnswer",
    chunk: "OllamaPromptAnswer",
    refusals: refusalsOfSettings,
  },
  ollamaEmbed: {
    path: "/api/embed",
    summary: "Make vectors of texts",
    description: "One vector for each text, in their order. No text is cut: one that is too long is an error.",
    body: "OllamaTextsRequest",
    answer: "OllamaVectors",
    refusals: refusalsOfSettings,
  },
  ollamaEmbeddings: {
    path: "/api/embeddings",
    summary: "Make the vector of one text",
    description: "The older form of `/api/embed`.",
    body: "OllamaTextRequest",
    answer: "OllamaVector",
    refusals: refusalsOfSettings,
  },
  ollamaTags: {
    path: "/api/tags",
    summary: "List the models that the key may use",
    description: "The same models as of `GET /v1/models`, each with a tag.",
    answer: "OllamaModels",
    refusals: refusalsOfMachines,
  },
  ollamaLoaded: {
    path: "/api/ps",
    summary: "List the models in memory",
    description: "Of the models that the key may use, those that a machine reports to have in its memory.",
    answer: "OllamaModels",
    refusals: refusalsOfMachines,
  },
  ollamaShow: {
    path: "/api/show",
    summary: "Look one model up",
    description: "Its capabilities, and its context window in `model_info`.",
    body: "OllamaShowRequest",
    answer: "OllamaShown",
    refusals: [...refusalsOfMachines, "model_not_found"],
  },
  ollamaVersion: {
    path: "/api/version",
    summary: "Read the version of Ollama's API",
    description: "Clients compare it before they use a newer feature.",
    answer: "OllamaVersion",
    refusals: [],
  },
  getHealth: {
    path: "/healthz",
    summary: "See that this gateway runs",
    description: "Asks no machine and no store.",
    answer: "Health",
    refusals: [],
  },
  getReadiness: {
    path: "/readyz",
    summary: "See whether this gateway can serve",
    description: "For balancers. Machines are not asked: a gateway is not taken out because they are away.",
    answer: "Readiness",
    otherwise: { status: 503, schema: "Readiness" },
    refusals: [],
  },
  getHealthAsBenchmarksDo: {
    path: "/health",
    summary: "The same, where benchmarks look for it",
    description: "Answers as `/readyz` does.",
    answer: "Readiness",
    otherwise: { status: 503, schema: "Readiness" },
    refusals: [],
  },
  getOpenApi: {
    path: "/openapi.json",
    summary: "Read this document",
    description: "OpenAPI 3.1, written from the schemas that requests are read with.",
    answer: { media: "application/json" },
    refusals: [],
  },
  getDocs: {
    path: "/docs",
    summary: "Read it as a page",
    description: "One page for people, made of the document.",
    answer: { media: "text/html" },
    refusals: [],
  },
} satisfies Readonly<Record<string, PublicOperation>>;

export type OperationId = keyof typeof publicApi;
export const operationIds = Object.keys(publicApi) as OperationId[];
