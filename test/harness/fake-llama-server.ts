import { askedChat, mediaIn, textIn, tokensIn, wordsIn, type AskedChat, askedText } from "./asked-chat.ts";
import type { ChatForm, TextForm } from "./fake-openai-chat.ts";
import { FakeOpenAiServer, sendJson, type Exchange } from "./fake-openai-server.ts";
import { rankedByLength } from "./fake-scores.ts";
import { vectorList } from "./fake-vectors.ts";

export interface FakeLlamaModel {
  /** Its alias, or the file as it was named at the start. */
  readonly name: string;
  readonly modelPath?: string;
  /** Of each slot. */
  readonly contextTokens?: number;
  readonly slots?: number;
  readonly sizeBytes?: number;
  readonly vision?: boolean;
  readonly tools?: boolean;
  /** Whether it was started with `--embeddings`. */
  readonly embeddings?: boolean;
  /** Whether it was started with `--reranking`. */
  readonly reranking?: boolean;
  readonly template?: string;
}

interface FakeLlamaServerOptions {
  readonly model?: FakeLlamaModel;
  readonly apiKey?: string;
  readonly port?: number;
}

/** llama-server (0.7) with one model, over real HTTP: what it tells and refuses, and its chunks. */
export class FakeLlamaServer extends FakeOpenAiServer {
  model: FakeLlamaModel;
  /** While true it brings its model into memory, and says so to everything that is asked. */
  loading = false;
  sleeping = false;
  readonly #apiKey: string | undefined;

  private constructor({ model, apiKey }: FakeLlamaServerOptions) {
    super();
    this.model = model ?? { name: "qwen3-8b" };
    this.#apiKey = apiKey;
  }

  static start(options: FakeLlamaServerOptions = {}): Promise<FakeLlamaServer> {
    return new FakeLlamaServer(options).listen(options.port);
  }

  protected override answer(exchange: Exchange): void | Promise<void> {
    const { request, response, route } = exchange;
    if (this.#apiKey !== undefined && !isPublic(request.path)) {
      if (request.headers.authorization !== `Bearer ${this.#apiKey}`) {
        return sendJson(response, 401, { error: llamaError(401, "Invalid API Key") });
      }
    }
    if (this.loading) return sendJson(response, 503, { error: llamaError(503, "Loading model") });
    switch (route) {
      case "GET /health":
      case "GET /v1/health":
        return sendJson(response, 200, { status: "ok" });
      case "GET /props":
        return sendJson(response, 200, llamaProps(this.model, { sleeping: this.sleeping }));
      case "GET /slots":
        return sendJson(response, 200, llamaSlots(this.model, this.atWork));
      case "GET /metrics": {
        const message = "This server does not support metrics endpoint. Start it with `--metrics`";
        return sendJson(response, 501, { error: llamaError(501, message) });
      }
      case "GET /v1/models":
      case "GET /models":
        return sendJson(response, 200, this.#list());
      case "POST /v1/chat/completions":
        return this.#chat(exchange);
      case "POST /apply-template":
        return this.#apply(exchange);
      case "POST /tokenize": {
        const { content, add_special, parse_special, with_pieces } = exchange.request.body;
        const marks = add_special === true && parse_special === true ? 1 : 0;
        const tokens = Array.from({ length: wordsIn(String(content)) + marks }, (_, id) => id);
        if (with_pieces !== true) return sendJson(response, 200, { tokens });
        // A piece that is no whole character comes as bytes.
        return sendJson(response, 200, { tokens: tokens.map((id) => ({ id, piece: id === 0 ? [240, 159] : "sky" })) });
      }
      case "POST /detokenize":
        return sendJson(response, 200, { content: String(exchange.request.body["tokens"]) });
      case "POST /v1/completions":
        return this.#text(exchange);
      case "POST /v1/embeddings":
        return llamaEmbed(exchange, this.model);
      case "POST /v1/rerank":
        return this.#rerank(exchange);
      default:
        return sendJson(response, 404, { error: llamaError(404, "File Not Found") });
    }
  }

  #rerank({ request, response }: Exchange): void {
    if (this.model.reranking !== true) {
      const message = "This server does not support reranking. Start it with `--reranking`";
      return sendJson(response, 501, { error: llamaError(501, message) });
    }
    const ranked = rankedByLength(request.body);
    const usage = { prompt_tokens: ranked.length * 5, total_tokens: ranked.length * 5 };
    return sendJson(response, 200, { model: this.model.name, object: "list", usage, results: ranked });
  }

  /** Whatever model is asked for, it is this one that answers. */
  #chat(exchange: Exchange): void | Promise<void> {
    const refusal = llamaRefusal(exchange, this.model);
    if (refusal !== undefined) return sendJson(exchange.response, refusal.code, { error: refusal });
    return this.chat(exchange, { form: llamaForm, model: this.model.name });
  }

  /** Its template writes tools and messages one after the other. */
  #apply(exchange: Exchange): void {
    const refusal = llamaRefusal(exchange, this.model);
    if (refusal !== undefined) return sendJson(exchange.response, refusal.code, { error: refusal });
    const { messages, tools = [] } = askedChat.parse(exchange.sent);
    const prompt = [...tools.map((tool) => JSON.stringify(tool)), ...messages.map(({ content }) => textIn(content))];
    return sendJson(exchange.response, 200, { prompt: prompt.join("\n") });
  }

  #text(exchange: Exchange): void | Promise<void> {
    const refusal = llamaTextRefusal(exchange, this.model);
    if (refusal !== undefined) return sendJson(exchange.response, refusal.code, { error: refusal });
    return this.text(exchange, { form: llamaTextForm, model: this.model.name });
  }

  /** The list in two shapes at once; it tells nothing of the model's while that sleeps. */
  #list(): object {
    const { name, vision = false } = this.model;
    const capabilities = vision ? ["completion", "multimodal"] : ["completion"];
    const details = { parent_model: "", format: "gguf", family: "", families: [""], parameter_size: "" };
    return {
      models: [{ name, model: name, modified_at: "", size: "", digest: "", type: "model", capabilities, details }],
      object: "list",
      data: [
        {
          id: name,
          aliases: [name],
          tags: [],
          object: "model",
          architecture: { input_modalities: vision ? ["text", "image"] : ["text"], output_modalities: ["text"] },
          created: Math.floor(Date.now() / 1_000),
          owned_by: "llamacpp",
          meta: this.sleeping ? null : llamaMeta(this.model),
        },
      ],
    };
  }
}

/** What the server's own door lets in without a key. */
function isPublic(path: string): boolean {
  return path === "/health" || path === "/v1/health";
}

export function llamaMeta({ contextTokens = 8_192, sizeBytes = 5_027_783_488 }: FakeLlamaModel): object {
  const size = { n_params: 8_190_735_360, size: sizeBytes, n_vocab: 151_936, vocab_type: 2, ftype: "Q4_K - Medium" };
  return { n_ctx: contextTokens, n_ctx_train: 40_960, n_embd: 4_096, ...size };
}

export function llamaProps(model: FakeLlamaModel, state: { readonly sleeping: boolean }): object {
  // As a number of 32 bits is written with the digits of 64.
  const params = { n_predict: -1, temperature: 0.800000011920929, top_p: 0.949999988079071 };
  const { name, modelPath = `/models/${name}.gguf`, contextTokens = 8_192, slots = 4, tools = true } = model;
  return {
    default_generation_settings: { id: 0, n_ctx: contextTokens, speculative: false, is_processing: false, params },
    total_slots: slots,
    model_alias: name,
    model_path: modelPath,
    modalities: { vision: model.vision ?? false, video: false, audio: false },
    chat_template: model.template ?? "{% for message in messages %}{{ message.content }}{% endfor %}",
    chat_template_caps: {
      supports_tools: tools,
      supports_tool_calls: tools,
      supports_parallel_tool_calls: false,
      supports_system_role: true,
      supports_preserve_reasoning: false,
      supports_reasoning_effort: false,
    },
    bos_token: "",
    eos_token: "<|im_end|>",
    build_info: "b11669-v0.7.0",
    is_sleeping: state.sleeping,
  };
}

export function llamaSlots({ slots = 4, contextTokens = 8_192 }: FakeLlamaModel, atWork: number): object[] {
  return Array.from({ length: slots }, (_, id) => ({ id, n_ctx: contextTokens, is_processing: id < atWork }));
}

interface LlamaRefusal {
  readonly code: number;
}

/** Its own words for what it does not take; images on a text model it calls its own failure. */
export function llamaRefusal({ sent }: Exchange, model: FakeLlamaModel): LlamaRefusal | undefined {
  if (sent === undefined) {
    const where = "parse error at line 1, column 26: syntax error while parsing value";
    return llamaError(400, `[json.exception.parse_error.101] ${where} - unexpected end of input`);
  }
  const parsed = askedChat.safeParse(sent);
  if (!parsed.success) {
    const isThere = sent["messages"] !== undefined;
    return llamaError(400, isThere ? "Expected 'messages' to be an array" : "'messages' is required");
  }
  const asked = parsed.data;
  if (model.embeddings === true || model.reranking === true) return doesNotComplete();
  const { n = 1, tools, tool_choice: choice = "auto", logprobs, stream } = asked;
  const { slots = 4 } = model;
  if (n > slots) return llamaError(400, `Field 'n': Value must be between 1 <= value <= ${slots}, but got ${n}`);
  if (logprobs === true && tools !== undefined && stream === true) {
    return llamaError(400, "logprobs is not supported with tools + stream");
  }
  if (tools === undefined && choice !== "auto" && choice !== "none") {
    return llamaError(400, 'Cannot use "tool_choice" without "tools"');
  }
  if (mediaIn(asked).includes("image_url") && model.vision !== true) {
    const hint = "hint: if this is unexpected, you may need to provide the mmproj";
    return llamaError(500, `image input is not supported - ${hint}`);
  }
  return trailingRefusal(asked) ?? tooLong(tokensIn(asked), model);
}

/** A suffix it ignores, and so it does an `echo`. */
export function llamaTextRefusal({ sent }: Exchange, model: FakeLlamaModel): LlamaRefusal | undefined {
  const parsed = askedText.safeParse(sent);
  if (!parsed.success) return llamaError(400, "[json.exception.out_of_range.403] key 'prompt' not found");
  if (model.embeddings === true || model.reranking === true) return doesNotComplete();
  return tooLong(wordsIn(parsed.data.prompt), model);
}

function doesNotComplete(): LlamaRefusal {
  return llamaError(501, "This server does not support completions. Start it without `--embeddings`");
}

function trailingRefusal({ messages }: AskedChat): LlamaRefusal | undefined {
  const [before, last] = messages.slice(-2);
  if (last?.role !== "assistant" || before?.role !== "assistant") return undefined;
  return llamaError(400, "Cannot have 2 or more assistant messages at the end of the list.");
}

function tooLong(tokens: number, { contextTokens = 8_192 }: FakeLlamaModel): LlamaRefusal | undefined {
  if (tokens <= contextTokens) return undefined;
  const message = `request (${tokens} tokens) exceeds the available context size (${contextTokens} tokens), try increasing it`;
  return {
    ...llamaError(400, message),
    type: "exceed_context_size_error",
    n_prompt_tokens: tokens,
    n_ctx: contextTokens,
  } as LlamaRefusal;
}

export function llamaEmbed({ request, response }: Exchange, model: FakeLlamaModel): void {
  if (model.embeddings !== true && model.reranking !== true) {
    const message = "This server does not support embeddings. Start it with `--embeddings`";
    return sendJson(response, 501, { error: llamaError(501, message) });
  }
  sendJson(response, 200, vectorList(request.body, { model: model.name }));
}

export function llamaError(code: number, message: string): LlamaRefusal & { message: string; type: string } {
  const types: Readonly<Record<number, string>> = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    501: "not_supported_error",
    503: "unavailable_error",
  };
  return { code, message, type: types[code] ?? "server_error" };
}

export const llamaForm: ChatForm = {
  opening: { role: "assistant", content: null },
  reasoning: "reasoning_content",
  ending: {},
  chunk: (model, choices) => ({
    choices,
    created: 1_795_200_000,
    id: "chatcmpl-Vq8h2kXrT0mZsJ4cN6yWbD1eG7uLpA3f",
    model,
    system_fingerprint: "b11669-v0.7.0",
    object: "chat.completion.chunk",
  }),
  choice: ({ index, delta, finishReason }) => ({ finish_reason: finishReason, index, delta }),
  usage: (model, usage) => ({
    ...llamaForm.chunk(model, []),
    usage: { ...usage, prompt_tokens_details: { cached_tokens: 4 } },
    timings: { cache_n: 4, prompt_n: 16, prompt_ms: 21.5, predicted_n: 3, predicted_ms: 30.1 },
  }),
  error: (status, message) => ({ error: llamaError(status, message) }),
};

export const llamaTextForm: TextForm = {
  chunk: (model, choices) => ({
    choices,
    created: 1_795_200_000,
    model,
    system_fingerprint: "b11669-v0.7.0",
    object: "text_completion",
    id: "chatcmpl-2lrnI1JT23lnXkBsDendaV7lKTLuubPG",
  }),
  choice: ({ text, finishReason, logprobs }) => ({ text, index: 0, logprobs, finish_reason: finishReason }),
  // It counts in the chunk that tells the finish, whether or not that was asked for.
  ending: (model, { finishReason, usage }) => [
    {
      ...llamaTextForm.chunk(model, [llamaTextForm.choice({ text: "", finishReason, logprobs: null })]),
      usage: {
        ...(usage ?? { completion_tokens: 3, prompt_tokens: 20, total_tokens: 23 }),
        prompt_tokens_details: { cached_tokens: 4 },
      },
      timings: { cache_n: 4, prompt_n: 16, prompt_ms: 21.5, predicted_n: 3, predicted_ms: 30.1 },
    },
  ],
  // In the form of chats, and none where no other token was asked for.
  logprobs: (token, others) => {
    if (others === 0) return null;
    const told = { id: 267, token, bytes: [...Buffer.from(token)], logprob: -0.25 };
    const other = { id: 268, token: "other", bytes: [...Buffer.from("other")], logprob: -1.5 };
    return { content: [{ ...told, top_logprobs: [told, other].slice(0, others) }] };
  },
  error: (status, message) => llamaForm.error(status, message),
};
