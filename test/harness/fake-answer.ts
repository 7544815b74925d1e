import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FakeRequest } from "./fake-openai-server.ts";

/** The answer to one request, byte by byte as a test gives it. What was written is on its way when a call returns. */
export abstract class FakeAnswer {
  readonly #response: ServerResponse;
  readonly #contentType: string;

  protected constructor(response: ServerResponse, contentType: string) {
    this.#response = response;
    this.#contentType = contentType;
  }

  raw(bytes: string | Uint8Array): void {
    this.rawWith(200, bytes);
  }

  /** The first bytes of an answer with this status, which may be followed by more. */
  rawWith(status: number, bytes: string | Uint8Array): void {
    if (!this.#response.headersSent) this.#response.writeHead(status, { "content-type": this.#contentType });
    this.#response.write(bytes);
  }

  /** Sends no more before the client has taken what was written. */
  async drained(): Promise<void> {
    if (!this.#response.writableNeedDrain) return;
    const seen = new AbortController();
    await Promise.race(["drain", "close"].map((name) => once(this.#response, name, { signal: seen.signal })));
    seen.abort();
  }

  /** Nothing more can be sent: it was ended, or its client left. */
  get ended(): boolean {
    return this.#response.writableEnded || this.#response.destroyed;
  }

  end(): void {
    this.#response.end();
  }

  /** Breaks the connection. */
  cut(): void {
    this.#response.destroy();
  }

  refuseWith(status: number, answer: { readonly contentType: string; readonly body: string }): void {
    this.#response.writeHead(status, { "content-type": answer.contentType }).end(answer.body);
  }
}

/** How one kind of server writes what goes wrong. */
export interface ErrorForm {
  error(status: number, message: string): object;
}

/** What an answer is to, and whose it is. */
export interface AnswerTo<Form> {
  readonly request: FakeRequest;
  readonly response: ServerResponse;
  readonly form: Form;
  /** As the server calls it, whatever it was asked for. */
  readonly model: string;
}

/** The answer to one question, as a test gives it in events. */
export abstract class FakeEvents<Form extends ErrorForm> extends FakeAnswer {
  readonly request: FakeRequest;
  protected readonly form: Form;
  protected readonly model: string;

  constructor({ request, response, form, model }: AnswerTo<Form>) {
    super(response, "text/event-stream");
    this.request = request;
    this.form = form;
    this.model = model;
  }

  /** One event with this as its data. */
  event(data: object): void {
    this.raw(`data: ${JSON.stringify(data)}\n\n`);
  }

  /** Refuses the request in this server's form, or with exactly this body. */
  refuse(status: number, error: string | object): void {
    const body = typeof error === "string" ? this.form.error(status, error) : error;
    this.refuseWith(status, { contentType: "application/json", body: JSON.stringify(body) });
  }

  protected get wantsUsage(): boolean {
    const options = this.request.body["stream_options"];
    return (
      typeof options === "object" && options !== null && "include_usage" in options && options.include_usage === true
    );
  }
}
