import { askedChat, tokensIn, wordsIn, askedText } from "./asked-chat.ts";
import { type ChatForm, usualEnding, type TextForm } from "./fake-openai-chat.ts";
import { FakeOpenAiServer, sendJson, type Exchange } from "./fake-openai-server.ts";
import { vectorList } from "./fake-vectors.ts";

export interface FakeLmStudioModel {
  readonly key: string;
  readonly type?: "llm" | "vlm" | "embedding";
  readonly publisher?: string;
  readonly format?: "gguf" | "mlx";
  readonly sizeBytes?: number;
  readonly maxContextTokens?: number;
  /** The window it is loaded with just now. */
  readonly loadedTokens?: number;
  readonly parallel?: number;
  readonly tools?: boolean;
  readonly thinks?: boolean;
  readonly selectedVariant?: string;
}

interface FakeLmStudioOptions {
  readonly models?: readonly FakeLmStudioModel[];
  /** Whether it is of before 0.4, which has another list of models and cannot be told to load. */
  readonly before04?: boolean;
  readonly port?: number;
}

/** What a model is loaded with when it is merely asked for. */
const loadedTokensDefault = 4_096;

/** LM Studio over real HTTP, without a model: what it tells and refuses, and its chunks. */
export class FakeLmStudio extends FakeOpenAiServer {
  models: readonly FakeLmStudioModel[];
  readonly #before04: boolean;

  private constructor({ models, before04 }: FakeLmStudioOptions) {
    super();
    this.models = models ?? [{ key: "qwen/qwen3-8b", loadedTokens: 8_192, tools: true }];
    this.#before04 = before04 ?? false;
  }

  static start(options: FakeLmStudioOptions = {}): Promise<FakeLmStudio> {
    return new FakeLmStudio(options).listen(options.port);
  }

  protected override answer(exchange: Exchange): void | Promise<void> {
    const { request, response, route } = exchange;
    if (this.#before04 && request.path.startsWith("/api/v1/")) return unexpected(exchange);
    switch (route) {
      case "GET /api/v1/models":
        return sendJson(response, 200, { models: this.models.map(listed) });
      case "GET /api/v0/models":
        return sendJson(response, 200, { object: "list", data: this.models.map(listedBefore) });
      case "GET /v1/models": {
        const data = this.models.map(({ key }) => ({ id: key, object: "model", owned_by: "organization_owner" }));
        return sendJson(response, 200, { object: "list", data });
      }
      case "POST /api/v1/models/load":
        return this.#load(exchange);
      case "POST /api/v1/models/unload":
        return this.#unload(exchange);
      case "POST /v1/chat/completions":
        return this.#chat(exchange);
      case "POST /v1/completions":
        return this.#text(exchange);
      case "POST /v1/embeddings":
        return sendJson(
          response,
          200,
          vectorList(request.body, { model: String(request.body["model"]), knowsBase64: false }),
        );
      default:
        return unexpected(exchange);
    }
  }

  #chat(exchange: Exchange): void | Promise<void> {
    const model = this.#find(exchange);
    const refusal = model === undefined ? unknownModel(exchange) : refusalOf(exchange, model);
    if (model === undefined || refusal !== undefined) {
      return sendJson(exchange.response, model === undefined ? 404 : 400, { error: refusal ?? "" });
    }
    this.#keep(model, model.loadedTokens ?? loadedTokensDefault);
    return this.chat(exchange, { form: lmStudioForm, model: model.key });
  }

  #text(exchange: Exchange): void | Promise<void> {
    const model = this.#find(exchange);
    if (model === undefined) return sendJson(exchange.response, 404, { error: unknownModel(exchange) });
    const parsed = askedText.safeParse(exchange.sent);
    const refusal = parsed.success
      ? tooLong(wordsIn(parsed.data.prompt), model)
      : "Invalid body: 'prompt' field is required";
    if (refusal !== undefined) return sendJson(exchange.response, 400, { error: refusal });
    this.#keep(model, model.loadedTokens ?? loadedTokensDefault);
    return this.text(exchange, { form: lmStudioTextForm, model: model.key });
  }

  #load(exchange: Exchange): void {
    const model = this.#find(exchange);
    if (model === undefined) return sendJson(exchange.response, 404, { error: unknownModel(exchange) });
    const tokens = Number(exchange.request.body["context_length"] ?? loadedTokensDefault);
    this.#keep(model, tokens);
    const loaded = { type: "llm", instance_id: model.key, load_time_seconds: 1.2, status: "loaded" };
    sendJson(exchange.response, 200, loaded);
  }

  #unload({ request, response }: Exchange): void {
    const instance = String(request.body["instance_id"]);
    const model = this.models.find(({ key, loadedTokens }) => key === instance && loadedTokens !== undefined);
    if (model === undefined) return sendJson(response, 404, { error: `No loaded instance '${instance}'` });
    this.#keep(model, undefined);
    sendJson(response, 200, { instance_id: instance });
  }

  #find({ request }: Exchange): FakeLmStudioModel | undefined {
    return this.models.find(({ key }) => key === request.body["model"]);
  }

  #keep(model: FakeLmStudioModel, loadedTokens: number | undefined): void {
    this.models = this.models.map((each) => {
      if (each.key !== model.key) return each;
      const { loadedTokens: _, ...rest } = each;
      return loadedTokens === undefined ? rest : { ...rest, loadedTokens };
    });
  }
}

/** It logs what it does not know as an error, and answers 200 all the same. */
function unexpected({ response, route }: Exchange): void {
  sendJson(response, 200, { error: `Unexpected endpoint or method. (${route})` });
}

function unknownModel({ request }: Exchange): object {
  const message = `Invalid model identifier "${String(request.body["model"])}". Please specify a valid downloaded model`;
  return { message, type: "invalid_request_error", param: "model", code: "model_not_found" };
}

function refusalOf({ sent }: Exchange, model: FakeLmStudioModel): string | undefined {
  const parsed = askedChat.safeParse(sent);
  if (!parsed.success) return "Invalid body: 'messages' field is required";
  const asked = parsed.data;
  const { tool_choice: choice } = asked;
  if (choice !== undefined && typeof choice !== "string") {
    return "Invalid tool_choice type: 'object'. Supported string values: none, auto, required";
  }
  if (asked.response_format !== undefined && !["json_schema", "text"].includes(asked.response_format.type)) {
    return "'response_format.type' must be 'json_schema' or 'text'";
  }
  if (asked.messages.some(({ content }) => Array.isArray(content) && content.length === 0)) {
    return "Invalid 'content': it must not be an empty array";
  }
  return tooLong(tokensIn(asked), model);
}

function tooLong(
  tokens: number,
  { loadedTokens: window = loadedTokensDefault }: FakeLmStudioModel,
): string | undefined {
  if (tokens <= window) return undefined;
  return (
    `Trying to keep the first ${tokens} tokens when context the overflows. However, the model is loaded with context ` +
    `length of only ${window} tokens, which is not enough. Try to load the model with a larger context length, or ` +
    "provide a shorter input"
  );
}

function listed(model: FakeLmStudioModel): object {
  const { key, type = "llm", format = "gguf", loadedTokens, parallel = 4, selectedVariant } = model;
  const config = { context_length: loadedTokens, eval_batch_size: 512, parallel, flash_attention: true };
  const reasoning = { allowed_options: ["off", "on"], default: "on" };
  return {
    type: type === "vlm" ? "llm" : type,
    publisher: model.publisher ?? key.split("/")[0],
    key,
    display_name: key,
    architecture: "qwen3",
    quantization: { name: format === "mlx" ? "4bit" : "Q4_K_M", bits_per_weight: 4 },
    size_bytes: model.sizeBytes ?? 5_027_783_488,
    params_string: "8B",
    loaded_instances: loadedTokens === undefined ? [] : [{ id: key, config }],
    max_context_length: model.maxContextTokens ?? 40_960,
    format,
    ...(type !== "embedding" && {
      capabilities: {
        vision: type === "vlm",
        trained_for_tool_use: model.tools ?? false,
        ...(model.thinks === true && { reasoning }),
      },
    }),
    ...(selectedVariant !== undefined && { variants: [selectedVariant], selected_variant: selectedVariant }),
  };
}

function listedBefore(model: FakeLmStudioModel): object {
  const { key, type = "llm", format = "gguf", loadedTokens, tools } = model;
  return {
    id: key,
    object: "model",
    type: type === "embedding" ? "embeddings" : type,
    publisher: model.publisher ?? key.split("/")[0],
    arch: "qwen3",
    compatibility_type: format,
    quantization: "Q4_K_M",
    state: loadedTokens === undefined ? "not-loaded" : "loaded",
    max_context_length: model.maxContextTokens ?? 40_960,
    ...(loadedTokens !== undefined && { loaded_context_length: loadedTokens }),
    ...(tools === true && { capabilities: ["tool_use"] }),
  };
}

const lmStudioForm: ChatForm = {
  always: { role: "assistant" },
  reasoning: "reasoning_content",
  ending: {},
  chunk: (model, choices) => ({
    id: "chatcmpl-jw9m3kq5z7c2x8v4b6n1",
    object: "chat.completion.chunk",
    created: 1_795_200_000,
    model,
    system_fingerprint: model,
    choices,
  }),
  choice: ({ index, delta, finishReason }) => ({ index, delta, logprobs: null, finish_reason: finishReason }),
  usage: (model, usage) => ({ ...lmStudioForm.chunk(model, []), usage }),
  error: (_, message) => ({ error: message }),
};

const lmStudioTextForm: TextForm = {
  chunk: (model, choices) => ({
    id: "cmpl-p9rtxv6fky2v9k8jrd8cc",
    object: "text_completion",
    created: 1_795_200_000,
    model,
    choices,
  }),
  // It tells no likelihoods.
  choice: ({ text, finishReason }) => ({ index: 0, text, logprobs: null, finish_reason: finishReason }),
  ending: usualEnding(() => lmStudioTextForm),
  logprobs: () => null,
  error: (status, message) => lmStudioForm.error(status, message),
};
