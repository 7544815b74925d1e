import { z } from "zod";
import { askedChat, mediaIn } from "./asked-chat.ts";
import type { ChatForm, TextForm } from "./fake-openai-chat.ts";
import { FakeOpenAiServer, type Exchange } from "./fake-openai-server.ts";

interface FakeMlxLmOptions {
  readonly models?: readonly string[];
  readonly port?: number;
}

const number = { schema: z.number(), called: "('float', 'int')" };
const whole = { schema: z.int(), called: "int" };

/** The types that it insists on, by Python's own names for them. */
const parameters: Readonly<Record<string, { readonly schema: z.ZodType; readonly called: string }>> = {
  stream: { schema: z.boolean(), called: "bool" },
  max_tokens: whole,
  temperature: number,
  top_p: number,
  presence_penalty: number,
  frequency_penalty: number,
  logprobs: { schema: z.boolean(), called: "bool" },
  top_logprobs: whole,
  seed: whole,
  logit_bias: { schema: z.looseObject({}), called: "dict" },
};

/**
 * The server of mlx-lm (0.32) over real HTTP, without a model. As Python's plain HTTP server it sends no lengths and no
 * chunks, so that an answer ends when the connection does, and hangs up without a word where an exception escapes it.
 */
export class FakeMlxLm extends FakeOpenAiServer {
  models: readonly string[];
  #isDead = false;

  private constructor(models: readonly string[]) {
    super();
    this.models = models;
  }

  static start(options: FakeMlxLmOptions = {}): Promise<FakeMlxLm> {
    return new FakeMlxLm(options.models ?? ["mlx-community/Qwen3-8B-4bit"]).listen(options.port);
  }

  protected override answer(exchange: Exchange): void | Promise<void> {
    const { response, route } = exchange;
    response.shouldKeepAlive = false;
    response.useChunkedEncodingByDefault = false;
    switch (route) {
      case "GET /health":
        return tell(exchange, 200, { status: "ok" });
      case "GET /v1/models":
        return tell(exchange, 200, { object: "list", data: this.models.map(entryOf) });
      case "POST /v1/chat/completions":
      case "POST /chat/completions":
        return this.#chat(exchange);
      case "POST /v1/completions":
        return this.#text(exchange);
      default:
        // As JSON, which it is not.
        response.writeHead(404, { "content-type": "application/json" }).end("Not Found");
    }
  }

  #chat(exchange: Exchange): void | Promise<void> {
    if (this.#isWrong(exchange, "messages")) return;
    const model = String(exchange.request.body["model"]);
    const refusal = this.#refusal(exchange, model);
    if (refusal !== undefined) return tell(exchange, 404, { error: refusal });
    return this.chat(exchange, { form: mlxForm, model });
  }

  /** A prompt without any token ends the thread that answers, and with it all answers there would have been. */
  #text(exchange: Exchange): void | Promise<void> {
    if (this.#isWrong(exchange, "prompt")) return;
    const { prompt, model } = exchange.request.body;
    if (!this.models.includes(String(model))) return tell(exchange, 404, { error: unknownModel(String(model)) });
    if (this.#isDead) return tell(exchange, 404, { error: "generation thread died" });
    if (prompt !== "") return this.text(exchange, { form: mlxTextForm, model: String(model) });
    this.#isDead = true;
    exchange.response.writeHead(200, { "content-type": "text/event-stream" }).end();
  }

  /** Whether the request was answered because there is something wrong with it. */
  #isWrong(exchange: Exchange, subject: "messages" | "prompt"): boolean {
    const { request, response, sent } = exchange;
    const refuse = (status: number, error: string): true => {
      tell(exchange, status, { error });
      return true;
    };
    if (request.headers["content-length"] === undefined) return refuse(411, "Content-Length header is required");
    if (sent === undefined) {
      return refuse(400, "Invalid JSON in request body: Expecting value: line 1 column 26 (char 25)");
    }
    const wrong = wrongType(sent);
    if (wrong !== undefined) return refuse(400, wrong);
    if (sent[subject] === undefined) {
      return refuse(400, `Request did not contain ${subject === "prompt" ? "a prompt" : subject}`);
    }
    const options = request.body["stream_options"];
    const lacksUsage = typeof options === "object" && options !== null && !("include_usage" in options);
    // It looks there only when it counts, and what is raised then is raised out of the server.
    if (lacksUsage) response.destroy();
    return lacksUsage;
  }

  /** Whatever goes wrong with a model is a 404. */
  #refusal({ sent }: Exchange, model: string): string | undefined {
    if (!this.models.includes(model)) return unknownModel(model);
    const asked = askedChat.safeParse(sent);
    if (!asked.success) return "'messages'";
    return mediaIn(asked.data).length > 0 ? "Only 'text' content type is supported." : undefined;
  }
}

function unknownModel(model: string): string {
  return `404 Client Error. Repository Not Found for url: https://huggingface.co/api/models/${model}/revision/main.`;
}

function wrongType(sent: Readonly<Record<string, unknown>>): string | undefined {
  for (const [name, { schema, called }] of Object.entries(parameters)) {
    if (sent[name] !== undefined && !schema.safeParse(sent[name]).success) return `${name} must be of type ${called}`;
  }
  return undefined;
}

function entryOf(id: string): object {
  return { id, object: "model", created: Math.floor(Date.now() / 1_000) };
}

function tell({ response }: Exchange, status: number, value: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

const mlxForm: ChatForm = {
  always: { role: "assistant" },
  reasoning: "reasoning",
  greeting: ": keepalive 1/1\n\n",
  ending: { role: "assistant" },
  chunk: (model, choices) => ({
    id: "chatcmpl-8d1c2f4e-6b7a-4c3d-9e0f-1a2b3c4d5e6f",
    system_fingerprint: "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit-applegpu_g16s",
    object: "chat.completion.chunk",
    model,
    created: 1_795_200_000,
    choices,
  }),
  choice: ({ index, delta, finishReason }) => ({ index, finish_reason: finishReason, delta }),
  usage: (model, usage) => ({ ...mlxForm.chunk(model, []), object: "chat.completion", usage }),
  error: (_, message) => ({ error: message }),
};

const mlxTextForm: TextForm = {
  greeting: ": keepalive 1/1\n\n",
  chunk: (model, choices) => ({
    ...mlxForm.chunk(model, choices),
    id: "cmpl-e908da76-9d3f-44d0-b895-492a3963814b",
    object: "text_completion",
  }),
  choice: ({ text, finishReason }) => ({ index: 0, finish_reason: finishReason, text }),
  ending: (model, { finishReason, usage }) => {
    const finish = mlxTextForm.chunk(model, [mlxTextForm.choice({ text: "", finishReason, logprobs: null })]);
    const counts = { ...mlxTextForm.chunk(model, []), object: "chat.completion", usage };
    return usage === undefined ? [finish] : [finish, counts];
  },
  logprobs: () => null,
  error: (status, message) => mlxForm.error(status, message),
};
