import { hash } from "node:crypto";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { encodeMediaBody } from "#shared/protocol/media-body.ts";
import type { Needs } from "../routing/choose-machine.ts";
import { readForm } from "../http/read-form.ts";
import { readJsonObject } from "../http/read-json.ts";
import {
  estimateContinued,
  estimatePrompt,
  estimateTexts,
  estimateTokens,
  chatCeiling,
  completionCeiling,
  embeddingCeiling,
  estimateMax,
  upperEstimate,
  type TokenCeiling,
  type UpperEstimate,
} from "../limits/token-estimates.ts";
import { readChatRequest, type ReadChatRequest, type ReadOuterChat } from "../apis/chat/chat-request.ts";
import type { RemoteImage } from "../images/image-fetcher.ts";
import type { SentNames } from "../chats/runtime-fields.ts";
import { nameToolsForMachines, type ClientToolNames } from "../chats/request-tools.ts";
import { steadyPrompt, type SteadyOptions } from "../chats/steady-prompt.ts";
import {
  readCompletionRequest,
  type ReadCompletionRequest,
  readEmbeddingsRequest,
  type ReadEmbeddingsRequest,
  seemToHoldTokens,
  type TextOfTokens,
} from "../apis/completions/text-requests.ts";
import type { AnswerForm } from "../apis/render-answer.ts";
import { boundsOf } from "../chats/unheld-bounds.ts";
import { readRerankRequest, type ReadRerankRequest, readScoreRequest } from "../apis/ranking/rerank-request.ts";
import { type MediaOuter, readMediaRequest, type ReadMediaRequest } from "../apis/media/media-request.ts";
import { readOllamaChat, readOllamaPrompt, readOllamaTexts } from "../apis/ollama/ollama-request.ts";
import type { OllamaOuter, OllamaTerms } from "../apis/ollama/ollama-request.ts";
import { readMessageRequest } from "../apis/messages/message-request.ts";
import { type ReadResponseRequest, readResponseRequest, type Stored } from "../apis/responses/response-request.ts";
import { blocksOfChat, blocksOfText } from "../routing/prompt-blocks.ts";
import { Fault } from "#shared/fault/fault.ts";
import { type OrderOwner, WorkThread } from "#shared/process/work-thread.ts";

/** The kinds of requests that models answer, by API. */
export type Outer =
  | "chat"
  | "response"
  | "response-count"
  | "message"
  | "count"
  | "completion"
  | "embeddings"
  | "rerank"
  | "score"
  | MediaOuter
  | OllamaOuter;

/** The effort of a request, and the field of the request that it came from. */
export interface AskedEffort {
  readonly field: string;
  readonly value: string;
}

/** A request to a model, once its shape is valid. All of it is plain data: another thread may read the request. */
export interface ReadRequest {
  readonly kind: JobKind;
  readonly model: string;
  readonly needs: Needs;
  /** The body of the job, and the hash of a body that is sent in parts. */
  readonly body: Uint8Array;
  readonly sha256: string | undefined;
  /** True if the answer is streamed. */
  readonly stream: boolean;
  readonly form: AnswerForm;
  readonly includeUsage: boolean;
  /** Paths of the request's unknown fields, which are ignored. */
  readonly ignored: readonly string[];
  /** The client's names of tools that were renamed for machines. */
  readonly toolNames?: ClientToolNames | undefined;
  /** The images that have to be fetched; the body has their URLs. */
  readonly remoteImages?: readonly RemoteImage[] | undefined;
  /** The client's names of fields that machines get under another name. */
  readonly sentNames?: SentNames | undefined;
  /** For a message: its effort, without which the job may run where the model or runtime lacks it. */
  readonly effort?: AskedEffort | undefined;
  /** The paths of the bounds of numbers in its schema, which some runtimes do not hold; undefined for none. */
  readonly bounds?: readonly string[] | undefined;
  /** True if the answer tells which stop string ended it. */
  readonly tellsStop?: boolean | undefined;
  /** Estimated tokens of the prompt, and of the prompt with the longest answers that the request allows. */
  readonly promptTokens: number;
  readonly tokens: number;
  /** For a count: the tokens of the prompt, estimated from above, and behind each of its known prefixes. */
  readonly upper?: UpperEstimate;
  /** The most tokens that a machine may report for the request; more is not believed. */
  readonly ceiling: TokenCeiling;
}

export interface ReadOptions {
  /** The stored turns that a request of the Responses API names; undefined if its key has none stored. */
  readonly stored?: Stored;
  /** The secret number that hashes of prompts begin with. */
  readonly promptSeed?: number;
  /** Only the reading thread has it, since its table is large. */
  readonly textOfTokens?: TextOfTokens;
  /** The boundary of a body that is a form; undefined for one that is JSON. */
  readonly boundary?: string | undefined;
}

/** Reads and checks a request from its bytes, and translates it to the body of its job. */
export function readRequest(
  outer: Outer,
  bytes: Buffer | undefined,
  { promptSeed = 0, textOfTokens, stored, boundary }: ReadOptions = {},
): ReadRequest {
  const input = boundary === undefined ? readJsonObject(bytes) : readForm(bytes, boundary);
  switch (outer) {
    case "chat":
      return outerChatOf(readChatRequest(input), promptSeed);
    case "response":
    case "response-count":
      return responseOf(readResponseRequest(input, stored), { counts: outer === "response-count", promptSeed });
    case "message":
    case "count":
      return messageOf(input, { counts: outer === "count", promptSeed });
    case "completion":
      return completionOf(readCompletionRequest(input), promptSeed);
    case "embeddings":
      return embeddingsOf(readEmbeddingsRequest(input, textOfTokens));
    case "rerank":
      return rankingOf(readRerankRequest(input));
    case "score":
      return scoresOf(readScoreRequest(input));
    case "transcription":
    case "translation":
    case "speech":
    case "image":
    case "image-edit":
    case "moderation":
    case "tokenize":
    case "detokenize":
      return mediaOf(readMediaRequest(outer, input));
    case "ollama-chat":
      return ollamaOf(readOllamaChat(input), promptSeed);
    case "ollama-generate":
      return ollamaOf(readOllamaPrompt(input), promptSeed);
    case "ollama-embed":
      return ollamaOf(readOllamaTexts("embed", input), promptSeed);
    case "ollama-embeddings":
      return ollamaOf(readOllamaTexts("embeddings", input), promptSeed);
  }
}

interface ChatReading extends SteadyOptions {
  readonly promptSeed: number;
  /** True if the tokens of the prompt are wanted in place of an answer. */
  readonly counts?: boolean;
}

function chatOf(request: ReadChatRequest, reading: ChatReading): ReadRequest {
  const { model, stream, includeUsage, imageParam, remoteImages, sentNames } = request;
  const { body: steady, ignored } = steadyPrompt(request.body, reading);
  const { body, toolNames } = nameToolsForMachines(steady);
  const prompt = blocksOfChat(body, reading.promptSeed);
  const promptTokens = estimatePrompt(body);
  const job = jobBody(body);
  return {
    kind: "chat",
    model,
    stream,
    includeUsage,
    ignored: [...request.ignored, ...ignored],
    needs: {
      capability: "completion",
      tools: body.tools !== undefined,
      imageParam,
      promptTokens,
      answerTokensMax: body.max_tokens,
      answers: body.n,
      prompt,
    },
    ...(reading.counts === true && {
      upper: upperEstimate(
        body,
        prompt.turns.map(({ place }) => place),
      ),
    }),
    form: { api: "chat" },
    bounds: boundsOf(body),
    toolNames,
    sentNames,
    remoteImages,
    ...job,
    promptTokens,
    tokens: estimateTokens(body, promptTokens),
    ceiling: chatCeiling(body, job.body.byteLength),
  };
}

function outerChatOf(request: ReadOuterChat, promptSeed: number): ReadRequest {
  const chat = chatOf(request, { foldsSystem: false, promptSeed });
  return request.custom.length === 0
    ? chat
    : { ...chat, form: { api: "custom-chat", custom: new Set(request.custom) } };
}

/** Reads a response request as a chat. Its machine sends answer events, and this gateway renders them for the API. */
function responseOf(request: ReadResponseRequest, reading: Omit<ChatReading, "foldsSystem">): ReadRequest {
  const form: AnswerForm = { api: "response", terms: request.terms };
  return { ...chatOf(request, { ...reading, foldsSystem: true }), form };
}

/** Reads a request of the Messages API as a chat, like a response. */
function messageOf(input: Record<string, unknown>, reading: Omit<ChatReading, "foldsSystem">): ReadRequest {
  const request = readMessageRequest(input, reading.counts);
  const { effortField: field, loadedTools } = request;
  const { reasoning_effort: value } = request.body;
  const tellsStop = request.body.stop === undefined ? undefined : true;
  const chat = chatOf(request, { ...reading, foldsSystem: true, loadedTools });
  return { ...chat, form: { api: "message" }, effort: field && value && { field, value }, tellsStop };
}

/** Reads a request of Ollama's API as a chat, a text to continue, or embeddings. */
function ollamaOf(
  request: (ReadChatRequest | ReadCompletionRequest | ReadEmbeddingsRequest) & { readonly terms: OllamaTerms },
  promptSeed: number,
): ReadRequest {
  const form: AnswerForm = { api: "ollama", terms: request.terms };
  if ("format" in request) return { ...embeddingsOf(request), form };
  if (!("messages" in request.body)) return { ...completionOf(request as ReadCompletionRequest, promptSeed), form };
  const chat = chatOf(request as ReadChatRequest, { foldsSystem: false, promptSeed });
  // Clients switch thinking off by habit, also where a model always thinks.
  const isOff = request.body.reasoning_effort === "none";
  return { ...chat, form, effort: isOff ? { field: "think", value: "none" } : undefined };
}

function completionOf(request: ReadCompletionRequest, promptSeed: number): ReadRequest {
  const { model, stream, includeUsage, body, ignored, sentNames } = request;
  const estimate = estimateContinued(body);
  const { promptTokens } = estimate;
  const [text, ...others] = body.prompts;
  const prompt = text === undefined || others.length > 0 ? undefined : blocksOfText(text, promptSeed);
  const job = jobBody(body);
  return {
    kind: "complete",
    model,
    stream,
    includeUsage,
    ignored,
    needs: {
      capability: "completion",
      tools: false,
      imageParam: undefined,
      promptTokens,
      answerTokensMax: body.max_tokens,
      answers: body.n,
      prompt,
    },
    form: { api: "text" },
    sentNames,
    ...job,
    ...estimate,
    ceiling: completionCeiling(body, job.body.byteLength),
  };
}

/** Returns what requests have in common that turn texts into numbers. Their answers come whole. */
function requestOfTexts(
  kind: "embed" | "rerank",
  { body, tokens }: { readonly body: object; readonly tokens: number },
) {
  return {
    kind,
    stream: false,
    includeUsage: true,
    needs: needsOfInput(kind === "embed" ? "embedding" : "rerank", tokens),
    ...jobBody(body),
    promptTokens: tokens,
    tokens,
  };
}

/** Returns the needs of a request whose work is in its input alone. */
function needsOfInput(capability: Needs["capability"], workTokens: number): Needs {
  return { capability, tools: false, imageParam: undefined, workTokens, answerTokensMax: 0 };
}

function embeddingsOf({ model, format, body, ignored }: ReadEmbeddingsRequest): ReadRequest {
  const read = requestOfTexts("embed", { body, tokens: estimateTexts(body.input) });
  const ceiling = embeddingCeiling(body, read.body.byteLength);
  return { ...read, model, ignored, form: { api: "embeddings", format }, ceiling };
}

function rankingOf({ model, body, ignored, ranking }: ReadRerankRequest): ReadRequest {
  const { query, documents: pairs } = body;
  // A model reads the query once for each document.
  const tokens = Math.min(estimateTexts(pairs) + estimateTexts([query]) * pairs.length, estimateMax);
  const read = requestOfTexts("rerank", { body, tokens });
  const bytes = Buffer.byteLength(query) * pairs.length + read.body.byteLength;
  const ceiling = embeddingCeiling({ input: pairs }, bytes);
  return { ...read, model, ignored, form: { api: "ranking", terms: ranking }, ceiling };
}

/** Reads a request for scores as one to rerank, whose answer keeps the order of the documents. */
function scoresOf(request: ReadRerankRequest): ReadRequest {
  const sentNames = { query: "text_1", documents: "text_2" };
  return { ...rankingOf(request), form: { api: "scores" }, sentNames };
}

/** Bytes of a request about speech or images that cost a machine about as much as a token of a prompt. */
const bytesPerWorkToken = 1_000;

function mediaOf({ model, ability, body: media, ignored, answer }: ReadMediaRequest): ReadRequest {
  const job = jobBytes(encodeMediaBody(media));
  if (job.body.byteLength > limits.jobBodyBytesMax) {
    const message = `The request has more than ${limits.jobBodyBytesMax} bytes for its machine (jobBodyBytesMax).`;
    throw new Fault("request_too_large", { message });
  }
  const workTokens = Math.ceil(job.body.byteLength / bytesPerWorkToken);
  return {
    kind: "media",
    model,
    stream: answer.form === "transcript" || answer.form === "audio",
    includeUsage: false,
    ignored,
    needs: needsOfInput(ability, workTokens),
    form: { api: "media", answer },
    ...job,
    promptTokens: 0,
    tokens: 0,
    // Its units are no tokens, which a window would bound.
    ceiling: { promptTokens: job.body.byteLength, prompts: Infinity, answers: 1, answerTokens: undefined },
  };
}

/** Returns a job's body as bytes, and the hash of a body that is sent in parts. */
export function jobBody(value: object): Pick<ReadRequest, "body" | "sha256"> {
  return jobBytes(encodeJson(value));
}

function jobBytes(body: Uint8Array): Pick<ReadRequest, "body" | "sha256"> {
  return { body, sha256: body.byteLength > limits.partBytes ? hash("sha256", body) : undefined };
}

export interface ReadOrder {
  readonly outer: Outer;
  readonly bytes: Uint8Array;
  readonly promptSeed: number;
  readonly stored?: Stored;
  readonly boundary?: string | undefined;
}

/** Up to this size a request is read in the main thread: that is faster than handing it over. */
const readHereBytesMax = limits.partBytes;
/** The same for a count of tokens, whose estimate takes three times as long as the rest. */
const countedHereBytesMax = limits.partBytes / 4;
/** Larger requests are read in a thread of their own: one takes half a second, for which smaller ones do not wait. */
const readBesideBytesMax = 1024 * 1024;
/** Bytes of all requests that the reading threads read, or that wait for them. */
export const readingBytesMax = 256 * 1024 * 1024;
/** The CPU time that a reading thread may take for a megabyte of a request: ten times what the densest takes. */
export const readingCpuMsPerMb = 1_000;
const tooSlowToRead = `This request took more than ${readingCpuMsPerMb} ms of CPU time for each megabyte to read (readingCpuMsPerMb); send it in smaller parts.`;

const readingThread = () =>
  new WorkThread<ReadOrder, ReadRequest>(new URL("./reading-thread.ts", import.meta.url), {
    msPerMb: readingCpuMsPerMb,
    fault: () => new Fault("bad_request", { message: tooSlowToRead }),
  });

/** Reads the requests of a gateway, the large ones in threads. */
export class RequestReader {
  readonly #promptSeed: number;
  readonly #thread = readingThread();
  readonly #largeThread = readingThread();

  /** `promptSeed` is the secret number that hashes of prompts begin with. */
  constructor(promptSeed: number) {
    this.#promptSeed = promptSeed;
  }

  /** Reads a request, in a reading thread if it is large with the stored turns that it names. */
  async read(
    outer: Outer,
    bytes: Buffer | undefined,
    { stored, boundary, ...owner }: Pick<ReadOptions, "stored" | "boundary"> & OrderOwner = {},
  ): Promise<ReadRequest> {
    const promptSeed = this.#promptSeed;
    if (bytes === undefined) return readRequest(outer, bytes, { boundary });
    const hereBytesMax = outer.endsWith("count") ? countedHereBytesMax : readHereBytesMax;
    const storedLength = stored?.values().reduce((sum, { length }) => sum + length, 0) ?? 0;
    const size = bytes.byteLength + storedLength;
    const needsThread = size > hereBytesMax || (outer === "embeddings" && seemToHoldTokens(bytes));
    if (!needsThread) return readRequest(outer, bytes, { promptSeed, stored, boundary });
    if (this.#thread.bytes + this.#largeThread.bytes + size > readingBytesMax) {
      const message = `The large requests that this gateway reads hold ${readingBytesMax} bytes already (readingBytesMax).`;
      throw new Fault("server_is_overloaded", { message });
    }
    const thread = size > readBesideBytesMax ? this.#largeThread : this.#thread;
    return thread.run({ outer, bytes, promptSeed, stored, boundary }, bytes, { ...owner, size });
  }

  /** Stops the reading threads; requests that still wait end in a fault. */
  async stop(): Promise<void> {
    await Promise.all([this.#thread.stop(), this.#largeThread.stop()]);
  }
}
