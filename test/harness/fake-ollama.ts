import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export interface FakeOllamaModel {
  /** As Ollama prints it, with its tag. */
  readonly name: string;
  readonly capabilities?: readonly string[];
  readonly format?: "gguf" | "safetensors";
  readonly sizeBytes?: number;
  readonly modifiedAt?: string;
  /** Changes with the model's content; made of the name unless told. */
  readonly digest?: string;
  readonly architecture?: string;
  readonly trainedTokens?: number;
  /** Lines of the Modelfile, such as `num_ctx 8192`. */
  readonly parameters?: string;
  /** The window it is loaded with just now. */
  readonly loadedTokens?: number;
  /** Makes it a cloud stub. */
  readonly remoteHost?: string;
  /** Makes `/api/show` fail, as it does for a damaged model. */
  readonly damaged?: boolean;
}

export interface FakeOllamaRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Whether the client closed the connection before it had the whole answer. */
  readonly closedEarly: boolean;
}

/** The answer to one chat, as a test gives it. What was written is on its way when the call returns. */
export class FakeOllamaChat {
  readonly request: FakeOllamaRequest;
  readonly #response: ServerResponse;

  constructor(request: FakeOllamaRequest, response: ServerResponse) {
    this.request = request;
    this.#response = response;
  }

  /** One line of the answer, with the fields that every line has. */
  line(fields: Readonly<Record<string, unknown>>): void {
    const { model } = this.request.body;
    this.raw(`${JSON.stringify({ model, created_at: "2026-11-20T10:00:00.123456789Z", ...fields })}\n`);
  }

  say(content: string): void {
    this.line({ message: { role: "assistant", content }, done: false });
  }

  /** The last line, and the end of the body. */
  done(fields: Readonly<Record<string, unknown>> = {}): void {
    const message = { role: "assistant", content: "" };
    const counts = { prompt_eval_count: 20, prompt_eval_duration: 1, eval_count: 3, eval_duration: 1 };
    this.line({ message, done: true, done_reason: "stop", total_duration: 1, load_duration: 1, ...counts, ...fields });
    this.end();
  }

  raw(bytes: string | Uint8Array): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, { "content-type": "application/x-ndjson" });
    this.#response.write(bytes);
  }

  end(): void {
    this.#response.end();
  }

  /** Breaks the connection. */
  cut(): void {
    this.#response.destroy();
  }

  refuse(status: number, error: string): void {
    sendJson(this.#response, status, { error });
  }
}

/**
 * An Ollama over real HTTP, without a model: discovery and `/api/chat` as streams of JSON lines, faithful to
 * Ollama itself (0.33). How a chat is answered is the test's choice, through `onChat`.
 */
export class FakeOllama {
  models: readonly FakeOllamaModel[];
  onChat: (chat: FakeOllamaChat) => void | Promise<void> = (chat) => {
    for (const word of ["Hello ", "from ", "Ollama."]) chat.say(word);
    chat.done();
  };
  /** While true it takes requests and answers none. */
  silent = false;
  readonly requests: FakeOllamaRequest[] = [];
  readonly #server: Server;

  private constructor(models: readonly FakeOllamaModel[]) {
    this.models = models;
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  static async start(options: { models?: readonly FakeOllamaModel[]; port?: number } = {}): Promise<FakeOllama> {
    const fake = new FakeOllama(options.models ?? [{ name: "llama3.2:latest" }]);
    fake.#server.listen(options.port ?? 0, "127.0.0.1");
    await once(fake.#server, "listening");
    return fake;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the fake Ollama does not listen");
    return `http://127.0.0.1:${address.port}`;
  }

  requestsTo(path: string): readonly FakeOllamaRequest[] {
    return this.requests.filter((request) => request.path === path);
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #take(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = incoming.url ?? "";
    const pieces: Buffer[] = await incoming.toArray();
    const text = Buffer.concat(pieces).toString();
    const body: Record<string, unknown> = text === "" ? {} : JSON.parse(text);
    const request = { path, body, closedEarly: false };
    response.once("close", () => {
      request.closedEarly = !response.writableFinished;
    });
    this.requests.push(request);
    if (!this.silent) await this.#answer(request, response);
  }

  async #answer(request: FakeOllamaRequest, response: ServerResponse): Promise<void> {
    switch (request.path) {
      case "/api/version":
        return sendJson(response, 200, { version: "0.33.0" });
      case "/api/tags":
        return sendJson(response, 200, { models: this.models.map(tagOf) });
      case "/api/ps": {
        const loaded = this.models.filter(({ loadedTokens }) => loadedTokens !== undefined);
        return sendJson(response, 200, { models: loaded.map(loadedOf) });
      }
      case "/api/show": {
        const model = this.#find(request);
        if (model === undefined) return sendJson(response, 404, { error: notFound(request) });
        if (model.damaged === true) return sendJson(response, 500, { error: "unexpected EOF in /root/.ollama/x" });
        return sendJson(response, 200, showOf(model));
      }
      case "/api/chat":
        return this.#chat(request, response);
      default:
        response.writeHead(404).end("404 page not found");
    }
  }

  async #chat(request: FakeOllamaRequest, response: ServerResponse): Promise<void> {
    const model = this.#find(request);
    if (model === undefined) return sendJson(response, 404, { error: notFound(request) });
    const able = capabilitiesOf(model);
    const name = String(request.body["model"]);
    const { tools, think } = request.body;
    if (!able.includes("completion")) return sendJson(response, 400, { error: `"${name}" does not support chat` });
    if (tools !== undefined && !able.includes("tools")) {
      return sendJson(response, 400, { error: `registry.ollama.ai/library/${name} does not support tools` });
    }
    if (think !== undefined && think !== false && !able.includes("thinking")) {
      return sendJson(response, 400, { error: `"${name}" does not support thinking` });
    }
    await this.onChat(new FakeOllamaChat(request, response));
  }

  /** Ollama finds names whatever their case, and takes the tag `latest` for granted. */
  #find({ body }: FakeOllamaRequest): FakeOllamaModel | undefined {
    const wanted = String(body["model"]).toLowerCase();
    return this.models.find(({ name }) => [wanted, `${wanted}:latest`].includes(name.toLowerCase()));
  }
}

function capabilitiesOf(model: FakeOllamaModel): readonly string[] {
  return model.capabilities ?? ["completion"];
}

function digestOf(model: FakeOllamaModel): string {
  return model.digest ?? createHash("sha256").update(model.name).digest("hex");
}

function detailsOf(model: FakeOllamaModel): object {
  const family = model.architecture ?? "llama";
  const format = model.remoteHost === undefined ? (model.format ?? "gguf") : "";
  return { parent_model: "", format, family, families: [family], parameter_size: "3.2B", quantization_level: "Q4_K_M" };
}

/** The list knows less than `/api/show`: here it never tells what a model can do, as Ollama before 0.30. */
function tagOf(model: FakeOllamaModel): object {
  return {
    name: model.name,
    model: model.name,
    ...(model.remoteHost !== undefined && { remote_model: model.name, remote_host: model.remoteHost }),
    modified_at: model.modifiedAt ?? "2026-08-01T10:00:00.123456789+02:00",
    size: model.sizeBytes ?? 2_019_393_189,
    digest: digestOf(model),
    details: detailsOf(model),
  };
}

function loadedOf(model: FakeOllamaModel): object {
  return {
    name: model.name,
    model: model.name,
    size: 4_000_000_000,
    digest: digestOf(model),
    details: detailsOf(model),
    expires_at: "2026-11-20T10:05:00Z",
    size_vram: 4_000_000_000,
    context_length: model.loadedTokens,
  };
}

function showOf(model: FakeOllamaModel): object {
  const architecture = model.architecture ?? "llama";
  return {
    license: "a licence",
    modelfile: "# Modelfile",
    parameters: model.parameters,
    template: "{{ .Prompt }}",
    details: detailsOf(model),
    model_info: {
      "general.architecture": architecture,
      [`${architecture}.context_length`]: model.trainedTokens ?? 131_072,
      [`${architecture}.block_count`]: 28,
    },
    tensors: [{ name: "output.weight", type: "Q6_K", shape: [3072, 128_256] }],
    capabilities: capabilitiesOf(model),
    modified_at: model.modifiedAt ?? "2026-08-01T10:00:00.123456789+02:00",
    ...(model.remoteHost !== undefined && { remote_model: model.name, remote_host: model.remoteHost }),
  };
}

function notFound({ body }: FakeOllamaRequest): string {
  return `model '${String(body["model"])}' not found`;
}

function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(value));
}
