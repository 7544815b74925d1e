import { once } from "node:events";
import type { ServerResponse } from "node:http";

export interface FakeOllamaRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Whether the client closed the connection before it had the whole answer. */
  readonly closedEarly: boolean;
}

/** The answer to one chat, as a test gives it. What was written is on its way when the call returns. */
export class FakeOllamaChat {
  readonly request: FakeOllamaRequest;
  /** The messages that the model gets to read: without those that Ollama forgot because they did not fit. */
  readonly read: readonly unknown[];
  readonly #response: ServerResponse;

  constructor(request: FakeOllamaRequest, response: ServerResponse, read: readonly unknown[]) {
    this.request = request;
    this.read = read;
    this.#response = response;
  }

  /** One line of the answer, with the fields that every line has. */
  line(fields: Readonly<Record<string, unknown>>): void {
    const { model } = this.request.body;
    this.raw(`${JSON.stringify({ model, created_at: "2026-11-20T10:00:00.123456789Z", ...fields })}\n`);
  }

  /** One token, with how likely it was where that was asked for. */
  say(content: string): void {
    const { logprobs, top_logprobs: others = 0 } = this.request.body;
    const told = { token: content, logprob: -0.25, bytes: [...Buffer.from(content)] };
    const likely = { ...told, ...(Number(others) > 0 && { top_logprobs: [told] }) };
    this.line({
      message: { role: "assistant", content },
      done: false,
      ...(logprobs === true && { logprobs: [likely] }),
    });
  }

  think(thinking: string): void {
    this.line({ message: { role: "assistant", content: "", thinking }, done: false });
  }

  /** The last line, and the end of the body. */
  done(fields: Readonly<Record<string, unknown>> = {}): void {
    const message = { role: "assistant", content: "" };
    const counts = { prompt_eval_count: 20, prompt_eval_duration: 1, eval_count: 3, eval_duration: 1 };
    this.line({ message, done: true, done_reason: "stop", total_duration: 1, load_duration: 1, ...counts, ...fields });
    this.end();
  }

  raw(bytes: string | Uint8Array): void {
    this.rawWith(200, bytes);
  }

  /** The first bytes of an answer with this status, which may be followed by more. */
  rawWith(status: number, bytes: string | Uint8Array): void {
    if (!this.#response.headersSent) this.#response.writeHead(status, { "content-type": "application/x-ndjson" });
    this.#response.write(bytes);
  }

  /** Sends no more before the client has taken what was written. */
  async drained(): Promise<void> {
    if (!this.#response.writableNeedDrain) return;
    const seen = new AbortController();
    await Promise.race(["drain", "close"].map((name) => once(this.#response, name, { signal: seen.signal })));
    seen.abort();
  }

  end(): void {
    this.#response.end();
  }

  /** Breaks the connection. */
  cut(): void {
    this.#response.destroy();
  }

  refuse(status: number, error: string): void {
    this.refuseWith(status, { contentType: "application/json; charset=utf-8", body: JSON.stringify({ error }) });
  }

  refuseWith(status: number, answer: { readonly contentType: string; readonly body: string }): void {
    this.#response.writeHead(status, { "content-type": answer.contentType }).end(answer.body);
  }
}
