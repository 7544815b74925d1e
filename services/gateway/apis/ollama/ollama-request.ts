import { Fault } from "#shared/fault/fault.ts";
import {
  type ChatBody,
  type ChatMessage,
  type CompleteBody,
  completionLogprobsMax,
} from "#shared/protocol/job-bodies.ts";
import { readShape } from "../../http/read-shape.ts";
import { type ChatForm, readAsChat, type ReadChatRequest } from "../../chats/read-chat.ts";
import {
  assertSchemaSize,
  dropNulls,
  dropNullsAt,
  dropUnset,
  FoundImages,
  givenFields,
  invalidValue,
  refuseFields,
  type RequestImages,
  stopStrings,
} from "../../requests/request-fields.ts";
import { chosenTools } from "../../chats/request-tools.ts";
import { innerChatFields, innerSampling } from "../../chats/runtime-fields.ts";
import type { ReadRequest, Reads } from "../../requests/read-request.ts";
import { readAsCompletion, type ReadCompletionRequest } from "../completions/completion-request.ts";
import { readAsTexts, type ReadEmbeddingsRequest } from "../embeddings/embeddings-request.ts";
import * as schema from "./ollama-schema.ts";
import { contentOf, ollamaTurns } from "./ollama-turns.ts";

/** The parts of a request that its answer needs. */
export interface OllamaTerms {
  readonly shape: "chat" | "generate" | "embed" | "embeddings";
  /** The model as the client named it, which is perhaps with `:latest`. */
  readonly model: string;
  /** True if the request asks for no answer: Ollama's clients load a model by an empty request. */
  readonly loads: boolean;
}

/** The parts of a request that its answer needs; those of chats for a chat alone. */
export type OllamaForm = ChatForm & { readonly terms: OllamaTerms };

export const reads: Reads = {
  "ollama-chat": { read: (input, { promptSeed }) => ollamaChatOf(readOllamaChat(input), promptSeed) },
  "ollama-generate": {
    read(input, { promptSeed }): ReadRequest<OllamaForm> {
      const request = readOllamaPrompt(input);
      if (!isText(request)) return ollamaChatOf(request, promptSeed);
      return { ...readAsCompletion(request, promptSeed), form: { terms: request.terms } };
    },
  },
  "ollama-embed": { read: (input) => ollamaTextsOf(readOllamaTexts("embed", input)) },
  "ollama-embeddings": { read: (input) => ollamaTextsOf(readOllamaTexts("embeddings", input)) },
};

function isText(request: Read<ReadChatRequest> | Read<ReadCompletionRequest>): request is Read<ReadCompletionRequest> {
  return "prompts" in request.body;
}

function ollamaTextsOf(request: Read<ReadEmbeddingsRequest>): ReadRequest<OllamaForm> {
  return { ...readAsTexts(request), form: { terms: request.terms } };
}

function ollamaChatOf(request: Read<ReadChatRequest>, promptSeed: number | undefined): ReadRequest<OllamaForm> {
  const chat = readAsChat(request, { foldsSystem: false, promptSeed });
  // Clients switch thinking off by habit, also where a model always thinks.
  const isOff = request.body.reasoning_effort === "none";
  const effort = isOff ? { field: "think", value: "none" } : undefined;
  return { ...chat, form: { ...chat.form, terms: request.terms }, effort };
}

type Read<Request> = Request & { readonly terms: OllamaTerms };

/** Reads a request of `/api/chat` and translates it to the job body. */
export function readOllamaChat(input: Record<string, unknown>): Read<ReadChatRequest> {
  dropUnused(input);
  dropNullsAt(input, ["messages", "messages.tool_calls", "messages.tool_calls.function", "tools.function"]);
  const { value, ignored } = readShape(schema.ollamaChatRequest, input);
  for (const [place, tool] of (value.tools ?? []).entries())
    assertSchemaSize(tool.function.parameters, `tools[${place}].function.parameters`);
  const turns = ollamaTurns(value.messages ?? []);
  const terms = termsOf({ shape: "chat", model: value.model, loads: turns.messages.length === 0 }, input);
  return chatOf(value, { ...turns, ignored, terms });
}

/** Reads a request of `/api/generate`: a chat of one message, or a text without a template. */
export function readOllamaPrompt(input: Record<string, unknown>): Read<ReadChatRequest> | Read<ReadCompletionRequest> {
  dropUnused(input);
  const { value, ignored } = readShape(schema.ollamaGenerateRequest, input);
  const { prompt, system, images: given, raw, suffix } = value;
  const loads = !prompt && !suffix && !given?.length;
  const terms = termsOf({ shape: "generate", model: value.model, loads }, input);
  if (!loads && (raw || suffix)) return textOf(value, { ignored, terms });
  const found = new FoundImages();
  const user: ChatMessage = { role: "user", content: contentOf(prompt ?? "", given, { path: "", images: found }) };
  const messages: ChatMessage[] = system ? [{ role: "system", content: system }, user] : [user];
  return chatOf(value, { messages, images: found.fields(), ignored, terms });
}

/** Reads a request of `/api/embed`, or of the older `/api/embeddings`, whose answer has one vector. */
export function readOllamaTexts(
  shape: "embed" | "embeddings",
  input: Record<string, unknown>,
): Read<ReadEmbeddingsRequest> {
  dropUnused(input);
  const { value, ignored } = readShape(
    shape === "embed" ? schema.ollamaEmbedRequest : schema.ollamaEmbeddingsRequest,
    input,
  );
  const { input: given = "", dimensions } = "input" in value ? value : { input: value.prompt ?? "" };
  const texts = typeof given === "string" ? [given] : given;
  const { model } = value;
  const terms = termsOf({ shape, model, loads: texts.length === 0 || given === "" }, input);
  const body = { input: texts, ...(typeof dimensions === "number" ? { dimensions } : {}) };
  return { model, body, ignored, terms };
}

/** Removes fields without a value, and refuses fields that cannot be honoured. */
function dropUnused(input: Record<string, unknown>): void {
  dropNulls(input);
  refuseFields(input, schema.unsupportedOllamaFields);
  const { options } = input;
  if (typeof options !== "object" || options === null) return;
  const settings = options as Record<string, unknown>;
  dropNulls(settings);
  dropUnset(settings);
  if (Number(settings["num_predict"]) < 0) Reflect.deleteProperty(settings, "num_predict");
  refuseFields(settings, schema.unsupportedOllamaOptions, "options.");
}

/** Throws for an empty request with `keep_alive: 0`, by which Ollama's clients unload a model. */
function termsOf(terms: OllamaTerms, { keep_alive: keeps }: Record<string, unknown>): OllamaTerms {
  if (!terms.loads || !/^0(?:\.0+)?[a-z]*$/.test(String(keeps))) return terms;
  throw new Fault("insufficient_permissions", {
    message: "A key unloads no model. The operator does: trunkline models unload <model>.",
    param: "keep_alive",
  });
}

type AskedAlike = schema.OllamaChatRequest | schema.OllamaGenerateRequest;

interface Chat extends Pick<Read<ReadChatRequest>, "ignored" | "terms"> {
  readonly messages: ChatMessage[];
  readonly images: RequestImages;
}

function chatOf(value: AskedAlike, { messages, images, ignored, terms }: Chat): Read<ReadChatRequest> {
  const { model, stream, format, think, logprobs, top_logprobs, options } = value;
  if (typeof format === "object") assertSchemaSize(format ?? undefined, "format");
  const body: ChatBody = {
    messages: messages.length > 0 ? messages : [{ role: "user", content: "" }],
    ...chosenTools("tools" in value ? (value.tools ?? []) : [], undefined),
    ...samplingOf(options),
    ...innerChatFields({ think }).fields,
    ...givenFields({ logprobs, top_logprobs: logprobs ? top_logprobs : undefined }),
    ...(format === "json" ? { response_format: { type: "json_object" } } : {}),
    ...(typeof format === "object" && format
      ? { response_format: { type: "json_schema", json_schema: { name: "answer", schema: format } } }
      : {}),
  };
  return { model, stream: stream ?? true, body, ...images, ignored, terms };
}

function samplingOf(options: AskedAlike["options"]): Partial<ChatBody> {
  if (!options) return {};
  const { num_predict: max_tokens, temperature, top_p, frequency_penalty, presence_penalty, seed, stop } = options;
  const given = { max_tokens, temperature, top_p, frequency_penalty, presence_penalty, seed };
  return { ...givenFields(given), ...stopStrings(stop), ...innerSampling(options).fields };
}

/** Reads a prompt that is continued as it is. Fields that need a template are refused. */
function textOf(
  request: schema.OllamaGenerateRequest,
  { ignored, terms }: Pick<Chat, "ignored" | "terms">,
): Read<ReadCompletionRequest> {
  const { model, stream, prompt, suffix, raw, logprobs, top_logprobs: top, options } = request;
  const { system, images, format, think } = request;
  const templated = Object.entries({ system, images: images?.length, format, think }).find(([, value]) => value);
  if (templated !== undefined) {
    const [param] = templated;
    const message = `'${param}' is not supported together with '${raw ? "raw" : "suffix"}': the prompt has no template.`;
    throw new Fault("unsupported_parameter", { message, param });
  }
  if (logprobs && (top ?? 0) > completionLogprobsMax)
    throw invalidValue("top_logprobs", `'top_logprobs' must be at most ${completionLogprobsMax} without a template.`);
  const body: CompleteBody = {
    prompts: [prompt ?? ""],
    ...(suffix ? { suffix } : {}),
    ...(samplingOf(options) as Partial<CompleteBody>),
    ...(logprobs ? { logprobs: top ?? 0 } : {}),
  };
  return { model, stream: stream ?? true, body, ignored, terms };
}
