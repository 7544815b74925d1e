import { z } from "zod";
import { askedChat, mediaIn } from "./asked-chat.ts";
import type { ChatForm } from "./fake-openai-chat.ts";
import { FakeOpenAiServer, type Exchange } from "./fake-openai-server.ts";

interface FakeMlxLmOptions {
  readonly models?: readonly string[];
  readonly port?: number;
}

/** Python's own names for the types that its server insists on. */
const parameters = z.looseObject({
  stream: z.boolean().optional(),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  max_tokens: z.number().optional(),
  max_completion_tokens: z.number().optional(),
  logit_bias: z.record(z.string(), z.number()).optional(),
  seed: z.int().optional(),
  stop: z.union([z.string(), z.array(z.string())]).optional(),
  chat_template_kwargs: z.looseObject({}).optional(),
});

/**
 * The server of mlx-lm over real HTTP, without a model. As Python's plain HTTP server it sends no lengths and no chunks,
 * so that an answer ends when the connection does, and hangs up without a word where an exception escapes it.
 */
export class FakeMlxLm extends FakeOpenAiServer {
  models: readonly string[];

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
      default:
        response.writeHead(404, { "content-type": "text/plain" }).end("Not Found");
    }
  }

  #chat(exchange: Exchange): void | Promise<void> {
    const { request, response, sent } = exchange;
    if (request.headers["content-length"] === undefined)
      return tell(exchange, 411, { error: "Content-Length required" });
    if (sent === undefined) return tell(exchange, 400, { error: "Invalid JSON in request body" });
    const options = request.body["stream_options"];
    const lacksUsage = typeof options === "object" && options !== null && !("include_usage" in options);
    // What is raised here is raised out of the server: nothing is answered at all.
    if (lacksUsage || !parameters.safeParse(sent).success) return void response.destroy();
    const model = String(request.body["model"]);
    const refusal = this.#refusal(exchange, model);
    if (refusal !== undefined) return tell(exchange, 404, { error: refusal });
    return this.chat(exchange, { form: mlxForm, model });
  }

  /** Whatever goes wrong with a model is a 404. */
  #refusal({ sent }: Exchange, model: string): string | undefined {
    if (!this.models.includes(model)) {
      return `404 Client Error. Repository Not Found for url: https://huggingface.co/api/models/${model}/revision/main.`;
    }
    const asked = askedChat.safeParse(sent);
    if (!asked.success) return "'messages'";
    return mediaIn(asked.data).length > 0 ? "Only 'text' content type is supported." : undefined;
  }
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
  // The finish rides with the last text.
  ending: { role: "assistant", content: "" },
  chunk: (model, choices) => ({
    id: "chatcmpl-8d1c2f4e-6b7a-4c3d-9e0f-1a2b3c4d5e6f",
    system_fingerprint: "0.32.0-0.31.2-macOS-26.1-arm64-arm-64bit-applegpu_g16s",
    object: "chat.completion.chunk",
    model,
    created: 1_795_200_000,
    choices,
  }),
  choice: ({ index, delta, finishReason }) => ({ index, finish_reason: finishReason, delta }),
  usage: (model, usage) => ({ ...mlxForm.chunk(model, []), object: "chat.completion", usage }),
  error: (_, message) => ({ error: message }),
};
