import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { FakeOpenAiChat, type ChatForm, FakeOpenAiText, type TextForm } from "./fake-openai-chat.ts";

export interface FakeRequest {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: Readonly<Record<string, unknown>>;
  /** The body as it came. */
  readonly bytes: Buffer;
  /** Whether the client closed the connection before it had the whole answer. */
  readonly closedEarly: boolean;
}

/** One request, and the means to answer it. */
export interface Exchange {
  readonly request: FakeRequest;
  readonly response: ServerResponse;
  /** Undefined when the body is no JSON object. */
  readonly sent: Readonly<Record<string, unknown>> | undefined;
  /** Method and path, as `GET /v1/models`. */
  readonly route: string;
}

/**
 * A model server of the OpenAI shape over real HTTP, without a model. What is asked is checked as the real one checks
 * it; how a chat is answered is the test's choice, through `onChat`, and how a text is continued, through `onText`.
 */
export abstract class FakeOpenAiServer implements AsyncDisposable {
  onChat: (chat: FakeOpenAiChat) => void | Promise<void> = (chat) => {
    for (const word of ["Hello ", "from ", "here."]) chat.say(word);
    chat.done();
  };
  onText: (text: FakeOpenAiText) => void | Promise<void> = (text) => {
    for (const word of [" and", " so", " on."]) text.say(word);
    text.done();
  };
  /** While true it takes requests and answers none. */
  silent = false;
  /** How long it takes to list its models. */
  listMs = 0;
  readonly requests: FakeRequest[] = [];
  readonly #server: Server;
  readonly #atWork = new Set<FakeRequest>();

  protected constructor() {
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  protected async listen(port = 0): Promise<this> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the fake server does not listen");
    return address.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  requestsTo(path: string): readonly FakeRequest[] {
    return this.requests.filter((request) => request.path === path);
  }

  /** The chats that were asked for as streams: not those by which an agent finds out what a model can do. */
  get chats(): readonly FakeRequest[] {
    return this.requestsTo("/v1/chat/completions").filter(({ body }) => body["stream"] === true);
  }

  /** The texts that it was asked to continue. */
  get texts(): readonly FakeRequest[] {
    return this.requestsTo("/v1/completions");
  }

  /** How many answers it works on: one that was left is worked on no more. */
  get atWork(): number {
    return this.#atWork.size;
  }

  /** Also of one that has stopped already. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  protected abstract answer(exchange: Exchange): void | Promise<void>;

  /** Answers a chat that is not refused. One that is asked for whole says a single word. */
  protected async chat(exchange: Exchange, told: { readonly form: ChatForm; readonly model: string }): Promise<void> {
    const { request, response } = exchange;
    if (request.body["stream"] !== true) {
      const choices = [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "length" }];
      sendJson(response, 200, { id: "chatcmpl-0", object: "chat.completion", model: told.model, choices });
      return;
    }
    this.#workOn(exchange);
    await this.onChat(new FakeOpenAiChat({ request, response, ...told }));
  }

  /** Continues a text that is not refused, as a stream. */
  protected async text(exchange: Exchange, told: { readonly form: TextForm; readonly model: string }): Promise<void> {
    const { request, response } = exchange;
    this.#workOn(exchange);
    await this.onText(new FakeOpenAiText({ request, response, ...told }));
  }

  #workOn({ request, response }: Exchange): void {
    this.#atWork.add(request);
    response.once("close", () => this.#atWork.delete(request));
  }

  async #take(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = incoming;
    const { pathname: path, searchParams: query } = new URL(url, "http://127.0.0.1");
    const pieces: Buffer[] = await incoming.toArray();
    const bytes = Buffer.concat(pieces);
    const sent = jsonObject(bytes.toString());
    const request = { method, path, query, headers, body: sent ?? {}, bytes, closedEarly: false };
    response.once("close", () => {
      request.closedEarly = !response.writableFinished;
    });
    this.requests.push(request);
    if (path === "/v1/models" && this.listMs > 0) await pause(this.listMs);
    if (!this.silent) await this.answer({ request, response, sent, route: `${method} ${path}` });
  }
}

function jsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

export function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(text);
}
