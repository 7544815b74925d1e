import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { wordsIn } from "./asked-chat.ts";
import { FakeOllamaChat, FakeOllamaText, type FakeOllamaRequest } from "./fake-ollama-chat.ts";
import {
  capabilitiesOf,
  loadedOf,
  showOf,
  tagOf,
  windowDefault,
  type FakeOllamaModel,
  promptRefusal,
  readInWindow,
} from "./fake-ollama-model.ts";
import { vectorOf } from "./fake-vectors.ts";

export { FakeOllamaChat, FakeOllamaText };
export type { FakeOllamaModel, FakeOllamaRequest };

/** One line of `/api/pull`. The first of each layer has no `completed`. */
export interface FakePullLine {
  readonly status?: string;
  readonly digest?: string;
  readonly total?: number;
  readonly completed?: number;
  readonly error?: string;
}

const layer = "6a0746a1ec1aef3e7ec53868f220ff6e389f6f8ef87a01d77c96807de94ca2aa";

/** What Ollama says of a small model that it pulls. */
const pullLines: readonly FakePullLine[] = [
  { status: "pulling manifest" },
  { status: "pulling 6a0746a1ec1a", digest: `sha256:${layer}`, total: 2_000_000 },
  { status: "pulling 6a0746a1ec1a", digest: `sha256:${layer}`, total: 2_000_000, completed: 1_200_000 },
  { status: "pulling 6a0746a1ec1a", digest: `sha256:${layer}`, total: 2_000_000, completed: 2_000_000 },
  { status: "verifying sha256 digest" },
  { status: "writing manifest" },
  { status: "success" },
];

/**
 * An Ollama over real HTTP, without a model: discovery, management, embeddings, and `/api/chat` as streams of JSON
 * lines, faithful to Ollama itself (0.33). How a chat is answered is the test's choice, through `onChat`, and how a text is
 * continued, through `onText`.
 */
export class FakeOllama {
  models: readonly FakeOllamaModel[];
  onChat: (chat: FakeOllamaChat) => void | Promise<void> = (chat) => {
    for (const word of ["Hello ", "from ", "Ollama."]) chat.say(word);
    chat.done();
  };
  onText: (text: FakeOllamaText) => void | Promise<void> = (text) => {
    for (const word of [" and", " so", " on."]) text.say(word);
    text.done();
  };
  /** What a pull says, line by line; a model is there when the last is a success. */
  onPull: (model: string) => Iterable<FakePullLine> | AsyncIterable<FakePullLine> = () => pullLines;
  /** Called while a model is loaded that was asked for without a prompt. What it throws is the error of the load. */
  onLoad: (model: string) => void | Promise<void> = () => undefined;
  /** While true it takes requests and answers none. */
  silent = false;
  /** While true as many wait for a model to be loaded as may. A model that is loaded takes any number. */
  queueFull = false;
  readonly requests: FakeOllamaRequest[] = [];
  readonly #version: string;
  readonly #server: Server;

  private constructor(models: readonly FakeOllamaModel[], version: string) {
    this.models = models;
    this.#version = version;
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  static async start(
    options: { models?: readonly FakeOllamaModel[]; version?: string; port?: number } = {},
  ): Promise<FakeOllama> {
    const fake = new FakeOllama(options.models ?? [{ name: "llama3.2:latest" }], options.version ?? "0.33.0");
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
      case "/":
        response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end("Ollama is running");
        return;
      case "/api/version":
        return sendJson(response, 200, { version: this.#version });
      case "/api/tags": {
        const tells = isAtLeast(this.#version, 0, 30);
        return sendJson(response, 200, { models: this.models.map((model) => tagOf(model, { tells })) });
      }
      case "/api/ps": {
        const loaded = this.models.filter(({ loadedTokens }) => loadedTokens !== undefined);
        return sendJson(response, 200, { models: loaded.map(loadedOf) });
      }
      case "/api/show":
        return this.#ofModel(request, response, (model) => {
          if (model.damaged === true) return sendJson(response, 500, { error: "unexpected EOF in /root/.ollama/x" });
          return sendJson(response, 200, showOf(model));
        });
      case "/api/chat":
        return this.#ofModel(request, response, (model) => this.#chat({ model, request, response }));
      case "/api/generate":
        return this.#ofModel(request, response, (model) => this.#generate({ model, request, response }));
      case "/api/embed":
        return this.#ofModel(request, response, (model) => this.#embed({ model, request, response }));
      case "/api/delete":
        return this.#ofModel(request, response, ({ name }) => {
          this.models = this.models.filter((model) => model.name !== name);
          response.writeHead(200).end();
        });
      case "/api/pull":
        return this.#pull(request, response);
      default:
        response.writeHead(404).end("404 page not found");
    }
  }

  async #chat({ model, request, response }: Asked): Promise<void> {
    const able = capabilitiesOf(model);
    const name = String(request.body["model"]);
    const { tools, think, messages } = request.body;
    if (!able.includes("completion")) return sendJson(response, 400, { error: `"${name}" does not support chat` });
    if (Array.isArray(messages) && messages.length === 0) {
      return this.#keep({ model, request, response }, { message: { role: "assistant", content: "" } });
    }
    if (tools !== undefined && !able.includes("tools")) {
      return sendJson(response, 400, { error: `registry.ollama.ai/library/${name} does not support tools` });
    }
    if (think !== undefined && think !== false && !able.includes("thinking")) {
      return sendJson(response, 400, { error: `"${name}" does not support thinking` });
    }
    if (this.#isFull(model)) return sendJson(response, 503, { error: queueFull });
    const window = readInWindow(model, request.body);
    if ("refusal" in window) return sendJson(response, 400, { error: window.refusal });
    await this.onChat(new FakeOllamaChat(request, response, window.read));
  }

  /** Without a prompt this is how a model is loaded and unloaded. */
  async #generate({ model, request, response }: Asked): Promise<void> {
    const able = capabilitiesOf(model);
    const { model: name, prompt = "", suffix, raw, template, system } = request.body;
    if (raw === true && (template !== undefined || system !== undefined)) {
      return sendJson(response, 400, { error: "raw mode does not support template, system, or context" });
    }
    if (!able.includes("completion")) {
      return sendJson(response, 400, { error: `"${String(name)}" does not support generate` });
    }
    if (suffix !== undefined && !able.includes("insert")) {
      return sendJson(response, 400, { error: `registry.ollama.ai/library/${model.name} does not support insert` });
    }
    if (prompt === "") return this.#keep({ model, request, response }, { response: "" });
    if (this.#isFull(model)) return sendJson(response, 503, { error: queueFull });
    const refusal = promptRefusal(model, request.body);
    if (refusal !== undefined) return sendJson(response, 400, { error: refusal });
    await this.onText(new FakeOllamaText(request, response));
  }

  async #keep({ model, request, response }: Asked, nothing: object): Promise<void> {
    if (this.#isFull(model)) return sendJson(response, 503, { error: queueFull });
    try {
      if (request.body["keep_alive"] !== 0 && model.loadedTokens === undefined) await this.onLoad(model.name);
    } catch (error) {
      return sendJson(response, 500, { error: error instanceof Error ? error.message : String(error) });
    }
    const told = this.#keepAlive(model, request);
    const head = { model: request.body["model"], created_at: "2026-11-20T10:00:00.123456789Z" };
    sendJson(response, 200, { ...head, ...nothing, done: true, done_reason: told });
  }

  #keepAlive(model: FakeOllamaModel, { body }: FakeOllamaRequest): "load" | "unload" {
    const unloads = body["keep_alive"] === 0;
    this.models = this.models.map((each) => {
      if (each.name !== model.name) return each;
      const { loadedTokens, ...rest } = each;
      if (unloads) return rest;
      return { ...rest, loadedTokens: loadedTokens ?? Math.min(each.trainedTokens ?? windowDefault, windowDefault) };
    });
    return unloads ? "unload" : "load";
  }

  #embed({ model, request, response }: Asked): void {
    const { model: name, input, dimensions, truncate } = request.body;
    if (this.#isFull(model)) return sendJson(response, 503, { error: queueFull });
    const texts = (Array.isArray(input) ? input : [input]).map(String);
    const tokensMax = model.trainedTokens ?? 131_072;
    if (truncate === false && texts.some((text) => wordsIn(text) > tokensMax)) {
      return sendJson(response, 400, { error: "the input length exceeds the context length" });
    }
    this.#keepAlive(model, request);
    const read = texts.map((text) =>
      wordsIn(text) > tokensMax ? text.split(/\s+/).slice(0, tokensMax).join(" ") : text,
    );
    const embeddings = read.map((text) => vectorOf(text, Number(dimensions ?? 8)));
    const times = { total_duration: 14_143_917, load_duration: 1_019_500 };
    return sendJson(response, 200, { model: name, embeddings, ...times, prompt_eval_count: texts.length });
  }

  async #pull({ body }: FakeOllamaRequest, response: ServerResponse): Promise<void> {
    const name = String(body["model"]);
    if (name === "") return sendJson(response, 400, { error: "invalid model name" });
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    for await (const line of this.onPull(name)) {
      response.write(`${JSON.stringify(line)}\n`);
      if (line.status === "success") this.#add(name.includes(":") ? name : `${name}:latest`);
    }
    response.end();
  }

  #add(name: string): void {
    if (!this.models.some((model) => model.name === name)) this.models = [{ name }, ...this.models];
  }

  /** Only who waits for a model to be loaded is refused. */
  #isFull(model: FakeOllamaModel): boolean {
    return this.queueFull && model.loadedTokens === undefined;
  }

  /** Ollama finds names whatever their case, and takes the tag `latest` for granted. */
  #ofModel(
    { body }: FakeOllamaRequest,
    response: ServerResponse,
    then: (model: FakeOllamaModel) => void | Promise<void>,
  ): void | Promise<void> {
    const name = String(body["model"]);
    const wanted = [name.toLowerCase(), `${name.toLowerCase()}:latest`];
    const model = this.models.find((each) => wanted.includes(each.name.toLowerCase()));
    return model === undefined ? sendJson(response, 404, { error: `model '${name}' not found` }) : then(model);
  }
}

interface Asked {
  readonly model: FakeOllamaModel;
  readonly request: FakeOllamaRequest;
  readonly response: ServerResponse;
}

const queueFull = "server busy, please try again.  maximum pending requests exceeded";

function isAtLeast(version: string, major: number, minor: number): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split(".").map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}

function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(value));
}
