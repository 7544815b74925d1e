import type { ServerResponse } from "node:http";
import { FakeAnswer } from "./fake-answer.ts";

export interface FakeOllamaRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Whether the client closed the connection before it had the whole answer. */
  readonly closedEarly: boolean;
}

/** The answer to one question, as a test gives it in the lines of Ollama. */
abstract class FakeOllamaAnswer extends FakeAnswer {
  readonly request: FakeOllamaRequest;

  constructor(request: FakeOllamaRequest, response: ServerResponse) {
    super(response, "application/x-ndjson");
    this.request = request;
  }

  /** One line of the answer, with the fields that every line has. */
  line(fields: Readonly<Record<string, unknown>>): void {
    const { model } = this.request.body;
    this.raw(`${JSON.stringify({ model, created_at: "2026-11-20T10:00:00.123456789Z", ...fields })}\n`);
  }

  /** One token, with how likely it was where that was asked for. */
  say(text: string): void {
    const { logprobs, top_logprobs: others = 0 } = this.request.body;
    const told = { token: text, logprob: -0.25, bytes: [...Buffer.from(text)] };
    const likely = { ...told, ...(Number(others) > 0 && { top_logprobs: [told] }) };
    this.line({ ...this.said(text), done: false, ...(logprobs === true && { logprobs: [likely] }) });
  }

  /** The last line, and the end of the body. */
  done(fields: Readonly<Record<string, unknown>> = {}): void {
    const counts = { prompt_eval_count: 20, prompt_eval_duration: 1, eval_count: 3, eval_duration: 1 };
    const durations = { total_duration: 1, load_duration: 1 };
    this.line({ ...this.said(""), done: true, done_reason: "stop", ...durations, ...counts, ...fields });
    this.end();
  }

  refuse(status: number, error: string): void {
    this.refuseWith(status, { contentType: "application/json; charset=utf-8", body: JSON.stringify({ error }) });
  }

  /** The fields of a line with this text. */
  protected abstract said(text: string): object;
}

/** The answer to one chat. */
export class FakeOllamaChat extends FakeOllamaAnswer {
  /** The messages that the model gets to read: without those that Ollama forgot because they did not fit. */
  readonly read: readonly unknown[];

  constructor(request: FakeOllamaRequest, response: ServerResponse, read: readonly unknown[]) {
    super(request, response);
    this.read = read;
  }

  think(thinking: string): void {
    this.line({ message: { role: "assistant", content: "", thinking }, done: false });
  }

  protected override said(content: string): object {
    return { message: { role: "assistant", content } };
  }
}

/** What `/api/generate` says to a prompt. */
export class FakeOllamaText extends FakeOllamaAnswer {
  /** Ollama tells a thought apart also in a raw answer, where the model's template knows its marks. */
  think(thinking: string): void {
    if (this.request.body["think"] === false) return this.say(`<think>${thinking}</think>`);
    this.line({ response: "", thinking, done: false });
  }

  protected override said(response: string): object {
    return { response };
  }
}
