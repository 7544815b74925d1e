import { Fault } from "#shared/fault/fault.ts";
import { completionLogprobsMax } from "#shared/protocol/job-bodies.ts";
import type { ChatBody, ChatMessage, CompleteBody } from "#shared/protocol/job-bodies.ts";
import { readShape } from "../../http/read-json.ts";
import { type ChatForm, readAsChat } from "../../chats/read-chat.ts";
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
import type { ReadOptions, ReadRequest, Reads } from "../../requests/read-request.ts";
import { readAsCompletion } from "../completions/completion-request.ts";
import { readAsEmbeddings } from "../embeddings/embeddings-request.ts";
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
  "ollama-chat": { read: readOllamaChat },
  "ollama-generate": { read: readOllamaPrompt },
  "ollama-embed": { read: (input) => readOllamaTexts("embed", input) },
  "ollama-embeddings": { read: (input) => readOllamaTexts("embeddings", input) },
};

/** Reads a request of `/api/chat` and translates it to the job body. */
function readOllamaChat(input: Record<string, unknown>, { promptSeed }: ReadOptions): ReadRequest<OllamaForm> {
  dropUnused(input);
  dropNullsAt(input, ["messages", "messages.tool_calls", "messages.tool_calls.function", "tools.function"]);
  const { value, ignored } = readShape(schema.ollamaChatRequest, input);
  for (const [index, tool] of (value.tools ?? []).entries())
    assertSchemaSize(tool.function.parameters, `tools[${index}].function.parameters`);
  const turns = ollamaTurns(value.messages ?? []);
  const terms = termsOf({ shape: "chat", model: value.model, loads: turns.messages.length === 0 }, input);
  return chatOf(value, { ...turns, ignored, terms, promptSeed });
}

/** Reads a request of `/api/generate`: a chat of one message, or a text without a template. */
function readOllamaPrompt(input: Record<string, unknown>, { promptSeed }: ReadOptions): ReadRequest<OllamaForm> {
  dropUnused(input);
  const { value, ignored } = readShape(schema.ollamaGenerateRequest, input);
  const { prompt, system, images: given, raw, suffix } = value;
  const loads = !prompt && !suffix && !given?.length;
  const terms = termsOf({ shape: "generate", model: value.model, loads }, input);
  if (!loads && (raw || suffix)) return textOf(value, { ignored, terms, promptSeed });
  const found = new FoundImages();
  const user: ChatMessage = { role: "user", content: contentOf(prompt ?? "", given, { path: "", images: found }) };
  const messages: ChatMessage[] = system ? [{ role: "system", content: system }, user] : [user];
  return chatOf(value, { messages, images: found.fields(), ignored, terms, promptSeed });
}

/** Reads a request of `/api/embed`, or of the older `/api/embeddings`, whose answer has one vector. */
function readOllamaTexts(shape: "embed" | "embeddings", input: Record<string, unknown>): ReadRequest<OllamaForm> {
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
  return readAsEmbeddings({ model, stream: false, body, ignored, form: { terms } });
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

interface Chat {
  readonly messages: ChatMessage[];
  readonly images: RequestImages;
  readonly ignored: readonly string[];
  readonly terms: OllamaTerms;
  readonly promptSeed: number | undefined;
}

function chatOf(value: AskedAlike, { messages, images, ignored, terms, promptSeed }: Chat): ReadRequest<OllamaForm> {
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
  const read = { model, stream: stream ?? true, body, ...images, ignored, form: { terms } };
  const chat = readAsChat(read, { foldsSystem: false, promptSeed });
  // Clients switch thinking off by habit, also where a model always thinks.
  return body.reasoning_effort === "none" ? { ...chat, effort: { field: "think", value: "none" } } : chat;
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
  { ignored, terms, promptSeed }: Pick<Chat, "ignored" | "terms" | "promptSeed">,
): ReadRequest<OllamaForm> {
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
  return readAsCompletion({ model, stream: stream ?? true, body, ignored, form: { terms } }, promptSeed);
}
