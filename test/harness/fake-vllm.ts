import { z } from "zod";
import { askedChat, tokensIn, wordsIn, type AskedChat, askedText } from "./asked-chat.ts";
import { type ChatForm, legacyLogprobs, usualEnding, type TextForm } from "./fake-openai-chat.ts";
import { FakeOpenAiServer, sendJson, sendText, type Exchange } from "./fake-openai-server.ts";
import { rankedByLength } from "./fake-scores.ts";
import { vectorList } from "./fake-vectors.ts";

export interface FakeVllmModel {
  readonly id: string;
  /** Where its files lie; its name on Hugging Face unless told. */
  readonly root?: string;
  /** Makes it an adapter of another. */
  readonly parent?: string;
}

interface FakeVllmOptions {
  readonly models?: readonly FakeVllmModel[];
  readonly maxModelLen?: number;
  /** Whether it was started with `--enable-auto-tool-choice --tool-call-parser …`. */
  readonly toolParser?: boolean;
  readonly task?: "generate" | "embed" | "score" | "transcription";
  /** Whether it is of before the efforts beside low, medium and high. */
  readonly fewEfforts?: boolean;
  /** Whether its model was made to fill in what stands before a suffix. */
  readonly fillsIn?: boolean;
  /** Whether it was started with `VLLM_SERVER_DEV_MODE=1` and `--enable-sleep-mode`, or with the first alone. */
  readonly sleeps?: boolean | "in vain";
  readonly port?: number;
}

type Refusal = readonly [status: number, message: string, param?: string];

/** vLLM (0.32) over real HTTP, without a model: what it tells and refuses, and its chunks. */
export class FakeVllm extends FakeOpenAiServer {
  readonly #options: Required<Omit<FakeVllmOptions, "port">>;
  isSleeping = false;
  /** True if it has the memory to wake up. */
  mayWake: () => boolean = () => true;

  private constructor(options: FakeVllmOptions) {
    super();
    this.#options = {
      models: options.models ?? [{ id: "Qwen/Qwen3-8B" }],
      maxModelLen: options.maxModelLen ?? 32_768,
      toolParser: options.toolParser ?? true,
      task: options.task ?? "generate",
      fewEfforts: options.fewEfforts ?? false,
      fillsIn: options.fillsIn ?? false,
      sleeps: options.sleeps ?? false,
    };
  }

  static start(options: FakeVllmOptions = {}): Promise<FakeVllm> {
    return new FakeVllm(options).listen(options.port);
  }

  protected override answer(exchange: Exchange): void | Promise<void> {
    const { response, route } = exchange;
    if (this.#options.sleeps && this.#sleep(exchange)) return;
    switch (route) {
      case "GET /health":
        response.writeHead(200, { "content-length": "0" }).end();
        return;
      case "GET /version":
        return sendJson(response, 200, { version: "0.32.0" });
      case "GET /metrics":
        return sendText(response, 200, this.#metrics());
      case "GET /v1/models":
        return sendJson(response, 200, {
          object: "list",
          data: this.#options.models.map((model) => this.#card(model)),
        });
      case "POST /v1/chat/completions":
        return this.#chat(exchange);
      case "POST /tokenize": {
        const { prompt, return_token_strs: strings } = exchange.request.body;
        if (typeof prompt === "string") {
          const pieces = prompt.match(/\s?\S+/g) ?? [];
          const tokens = pieces.map(({ length }) => length);
          const answer = { count: tokens.length, max_model_len: this.#options.maxModelLen, tokens };
          return sendJson(response, 200, { ...answer, token_strs: strings === true ? pieces : null });
        }
        const refusal = this.#refusal(exchange);
        if (refusal !== undefined) return sendJson(response, refusal[0], { error: errorOf(refusal[0], refusal[1]) });
        const { tools = [], ...asked } = askedChat.parse(exchange.sent);
        const count = tokensIn(asked) + tools.length;
        return sendJson(response, 200, { count, max_model_len: this.#options.maxModelLen, tokens: [] });
      }
      case "POST /detokenize":
        return sendJson(response, 200, { prompt: String(exchange.request.body["tokens"]) });
      case "POST /v1/completions":
        return this.#text(exchange);
      case "POST /v1/embeddings":
        return this.#embed(exchange);
      case "POST /v1/rerank":
        return this.#rerank(exchange);
      case "POST /v1/audio/transcriptions":
        // It has this path only with a model for it.
        if (this.#options.task !== "transcription") return sendJson(response, 404, { detail: "Not Found" });
        return sendJson(response, 200, { text: "Hello.", usage: { type: "duration", seconds: 1 } });
      default:
        return sendJson(response, 404, { detail: "Not Found" });
    }
  }

  /** The paths of the sleep mode. Asleep it answers no chat. */
  #sleep({ response, route }: Exchange): boolean {
    switch (route) {
      case "GET /is_sleeping":
        sendJson(response, 200, { is_sleeping: this.isSleeping });
        return true;
      case "GET /server_info":
        sendJson(response, 200, {
          vllm_config: { model_config: { enable_sleep_mode: this.#options.sleeps === true } },
        });
        return true;
      case "POST /sleep":
      case "POST /wake_up":
        if (route === "POST /wake_up" && !this.mayWake()) {
          sendJson(response, 500, { error: errorOf(500, "CUDA out of memory.") });
          return true;
        }
        this.isSleeping = route !== "POST /wake_up";
        sendJson(response, 200, this.isSleeping ? { status: "sleeping", level: 1 } : { status: "awake", tags: null });
        return true;
      default:
        return this.isSleeping && route === "POST /v1/chat/completions";
    }
  }

  #chat(exchange: Exchange): void | Promise<void> {
    const refusal = this.#refusal(exchange);
    const model = String(exchange.request.body["model"]);
    if (refusal === undefined) return this.chat(exchange, { form: vllmForm, model });
    const [status, message, param = null] = refusal;
    sendJson(exchange.response, status, { error: { ...errorOf(status, message), param } });
  }

  #text(exchange: Exchange): void | Promise<void> {
    const refusal = this.#textRefusal(exchange);
    const model = String(exchange.request.body["model"]);
    if (refusal === undefined) return this.text(exchange, { form: vllmTextForm, model });
    const [status, message, param = null] = refusal;
    sendJson(exchange.response, status, { error: { ...errorOf(status, message), param } });
  }

  #textRefusal({ sent }: Exchange): Refusal | undefined {
    const parsed = askedText.safeParse(sent);
    if (!parsed.success || parsed.data.prompt === "") {
      return [400, "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)", "prompt"];
    }
    const { model = "", prompt, suffix, max_tokens: limit = 16 } = parsed.data;
    if (!this.#options.models.some(({ id }) => id === model)) return this.#unknown(model);
    if (suffix !== undefined && !this.#options.fillsIn) {
      return [400, "suffix is only supported for models with FIM completion rendering", "suffix"];
    }
    return this.#tooLong({ limit, tokens: wordsIn(prompt) });
  }

  #unknown(model: string): Refusal {
    const aliases = this.#options.models.map(({ id }) => id).join(", ");
    return [404, `The model \`${model}\` does not exist. Valid aliases: ${aliases}.`, "model"];
  }

  #refusal({ sent }: Exchange): Refusal | undefined {
    const parsed = askedChat.safeParse(sent);
    if (!parsed.success) {
      return [
        400,
        "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.25', 'msg': 'JSON decode error'}",
        "body.25",
      ];
    }
    const asked = parsed.data;
    if (!this.#options.models.some(({ id }) => id === asked.model)) return this.#unknown(asked.model ?? "");
    if (this.#options.task !== "generate") return [400, "The model does not support Chat Completions API"];
    return (
      this.#wrongTogether(asked) ??
      this.#toolRefusal(asked) ??
      this.#tooLong({ limit: asked.max_tokens ?? 0, tokens: tokensIn(asked) })
    );
  }

  /** Fields that it does not know it ignores; of those that it knows it checks what goes together. */
  #wrongTogether(asked: AskedChat): Refusal | undefined {
    if (asked.stream_options !== undefined && asked.stream !== true) {
      return [400, "Stream options can only be defined when `stream=True`.", "stream_options"];
    }
    if (asked.top_logprobs !== undefined && asked.logprobs !== true) {
      return [400, "when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs"];
    }
    if (asked.continue_final_message === true && asked.add_generation_prompt !== false) {
      return [400, "Cannot set both `continue_final_message` and `add_generation_prompt` to True."];
    }
    const effort = asked.reasoning_effort;
    if (effort !== undefined && this.#options.fewEfforts && !["low", "medium", "high"].includes(effort)) {
      return [400, `1 validation error: Input should be 'low', 'medium' or 'high', input: '${effort}'`];
    }
    return undefined;
  }

  #toolRefusal(asked: AskedChat): Refusal | undefined {
    const { tools, tool_choice: choice = "auto" } = asked;
    if (tools === undefined) {
      return asked.tool_choice === undefined || choice === "none"
        ? undefined
        : [400, "When using `tool_choice`, `tools` must be set."];
    }
    if (choice === "none" || this.#options.toolParser) return undefined;
    if (choice === "auto") {
      return [400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'];
    }
    const wanted = choice === "required" ? '="required"' : `=function "${namedIn(choice)}"`;
    return [400, `tool_choice${wanted} requires --tool-call-parser to be set`];
  }

  #tooLong({ limit, tokens }: { limit: number; tokens: number }): Refusal | undefined {
    const { maxModelLen } = this.#options;
    if (limit > maxModelLen) {
      const why = `max_tokens=${limit} cannot be greater than max_model_len=${maxModelLen}`;
      const where = `(parameter=max_tokens, value=${limit})`;
      return [400, `${why}. Please request fewer output tokens. ${where}`, "max_tokens"];
    }
    // An answer gets what the prompt leaves of the window.
    return tokens > maxModelLen ? promptTooLong(maxModelLen) : undefined;
  }

  /** Reranks with a model for that, and with one for embeddings by the angle between vectors. */
  #rerank({ request, response }: Exchange): void {
    if (this.#options.task === "generate") return sendJson(response, 404, { detail: "Not Found" });
    const { documents = [] } = request.body as { documents?: string[] };
    const results = rankedByLength(request.body).map((each) => ({
      ...each,
      document: { text: documents[each.index], multi_modal: null },
    }));
    const usage = { total_tokens: results.length * 6 };
    sendJson(response, 200, { id: "score-0", model: request.body["model"], usage, results });
  }

  #embed({ request, response }: Exchange): void {
    // One that was not started to embed has no such interface.
    if (this.#options.task === "generate") return sendJson(response, 404, { detail: "Not Found" });
    if (this.#options.task === "score") {
      return sendJson(response, 400, { error: errorOf(400, "The model does not support Embeddings API") });
    }
    const { model, dimensions } = request.body;
    if (dimensions !== undefined) {
      const message = `Model "${String(model)}" does not support matryoshka representation, changing output dimensions will lead to poor results.`;
      return sendJson(response, 400, { error: errorOf(400, message) });
    }
    sendJson(response, 200, {
      id: "embd-0",
      created: nowSeconds(),
      ...vectorList(request.body, { model: String(model) }),
    });
  }

  #card({ id, root, parent }: FakeVllmModel): object {
    return {
      id,
      object: "model",
      // The time of the call, whatever the age of the model.
      created: nowSeconds(),
      owned_by: "vllm",
      root: root ?? id,
      parent: parent ?? null,
      ...(parent === undefined && { max_model_len: this.#options.maxModelLen }),
      permission: [{ id: "modelperm-0", object: "model_permission", allow_sampling: true, organization: "*" }],
    };
  }

  #metrics(): string {
    const labels = `{engine="0",model_name="${this.#options.models[0]?.id ?? ""}"}`;
    return [
      "# HELP vllm:num_requests_running Number of requests in model execution batches.",
      "# TYPE vllm:num_requests_running gauge",
      `vllm:num_requests_running${labels} ${this.atWork.toFixed(1)}`,
      `vllm:num_requests_waiting${labels} 0.0`,
      `vllm:kv_cache_usage_perc${labels} 0.01`,
      "",
    ].join("\n");
  }
}

const vllmForm: ChatForm = {
  opening: { role: "assistant", content: "" },
  reasoning: "reasoning",
  ending: {},
  calling: (piece) => ({ content: null, tool_calls: entriesOf(piece) }),
  chunk: (model, choices) => ({
    id: "chatcmpl-5f2c7d3ab1e84f0c9d6e1a2b3c4d5e6f",
    object: "chat.completion.chunk",
    created: 1_795_200_000,
    model,
    choices,
  }),
  choice: ({ index, delta, finishReason }) => ({
    index,
    delta,
    logprobs: null,
    finish_reason: finishReason,
    ...(finishReason !== null && { stop_reason: null }),
  }),
  usage: (model, usage) => ({ ...vllmForm.chunk(model, []), usage }),
  error: (status, message) => ({ error: errorOf(status, message) }),
};

const vllmTextForm: TextForm = {
  chunk: (model, choices) => ({
    id: "cmpl-b81b878cb3f34d82",
    object: "text_completion",
    created: 1_795_200_000,
    model,
    choices,
  }),
  choice: ({ text, finishReason, logprobs }) => ({
    index: 0,
    text,
    logprobs,
    finish_reason: finishReason,
    stop_reason: null,
    prompt_token_ids: null,
    token_ids: null,
  }),
  ending: usualEnding(() => vllmTextForm),
  logprobs: legacyLogprobs,
  error: (status, message) => vllmForm.error(status, message),
};

/** It reads no further than it must to know. */
function promptTooLong(maxModelLen: number): Refusal {
  const read = maxModelLen + 1;
  return [
    400,
    `This model's maximum context length is ${maxModelLen} tokens. However, your prompt contains at least ${read} ` +
      "input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input " +
      `prompt. (parameter=input_tokens, value=${read})`,
    "input_tokens",
  ];
}

/** A whole call, or its first piece, comes in two: the name, and what is known of the arguments. */
function entriesOf(piece: object): object[] {
  const { function: called, ...rest } = piece as { function?: { name?: string; arguments?: string } };
  if (called?.name === undefined || called.arguments === undefined) return [piece];
  const { index = 0 } = rest as { index?: number };
  return [
    { ...rest, index, function: { name: called.name } },
    { index, function: { arguments: called.arguments } },
  ];
}

function namedIn(choice: unknown): string {
  return z.object({ function: z.object({ name: z.string() }) }).safeParse(choice).data?.function.name ?? "";
}

function errorOf(status: number, message: string): object {
  const types: Readonly<Record<number, string>> = { 400: "BadRequestError", 404: "NotFoundError" };
  return { message, type: types[status] ?? "InternalServerError", param: null, code: status };
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}
