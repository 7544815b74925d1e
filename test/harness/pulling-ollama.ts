import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FakeOllama, type FakeOllamaModel } from "./fake-ollama.ts";

/** The answer to one `/api/pull`, as a test gives it. */
export class FakePull {
  readonly model: string;
  readonly #response: ServerResponse;

  constructor(model: string, response: ServerResponse) {
    this.model = model;
    this.#response = response;
  }

  /** A line as Ollama writes it: the first of each layer has no `completed`. */
  say(line: { status: string; digest?: string; total?: number; completed?: number }): void {
    this.#response.write(`${JSON.stringify(line)}\n`);
  }

  end(): void {
    this.#response.end();
  }

  /** Whether the client closed the connection before it had the whole answer. */
  get closedEarly(): boolean {
    return this.#response.closed && !this.#response.writableFinished;
  }
}

/** A fake Ollama that pulls models and deletes them. How a pull goes is the test's choice; all else is the fake's. */
export class PullingOllama implements AsyncDisposable {
  readonly fake: FakeOllama;
  readonly pulls: FakePull[] = [];
  readonly #server: Server;

  private constructor(fake: FakeOllama) {
    this.fake = fake;
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  static async start(models: readonly FakeOllamaModel[]): Promise<PullingOllama> {
    const pulling = new PullingOllama(await FakeOllama.start({ models }));
    pulling.#server.listen(0, "127.0.0.1");
    await once(pulling.#server, "listening");
    return pulling;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    await this.fake[Symbol.asyncDispose]();
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await request.toArray());
    const wanted = (): string => String((JSON.parse(body.toString()) as { model?: unknown }).model);
    if (request.url === "/api/pull") {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      this.pulls.push(new FakePull(wanted(), response));
      return;
    }
    if (request.method === "DELETE" && request.url === "/api/delete") {
      const left = this.fake.models.filter(({ name }) => ![wanted(), `${wanted()}:latest`].includes(name));
      const found = left.length < this.fake.models.length;
      this.fake.models = left;
      if (found) response.writeHead(200).end();
      else response.writeHead(404).end(JSON.stringify({ error: `model '${wanted()}' not found` }));
      return;
    }
    const { method = "GET", url = "" } = request;
    const answer = await fetch(this.fake.url + url, { method, ...(body.byteLength > 0 && { body }) });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  }
}
