import { Pool, type Dispatcher } from "undici";
import type { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { ownBytes } from "#shared/process/own-bytes.ts";
import { RuntimeAnswer } from "./runtime-answer.ts";

export interface Question {
  readonly path: string;
  /** Sent as JSON with POST, bytes as they are; without it the question is a GET. */
  readonly body?: unknown;
  /** Where it is neither of the two. */
  readonly method?: "DELETE";
  readonly signal: AbortSignal;
}

/** What a runtime says that is not a success. */
export interface Refusal {
  readonly status: number;
  /** Its beginning, as far as it is read. */
  readonly text: string;
}

interface ConnectionOptions {
  readonly url: string;
  /** Sent as a bearer token, for a runtime that was started with one. */
  readonly apiKey?: string | undefined;
  /** What a refusal means. Its text, which may hold paths, addresses and parts of the prompt, is to stay inside. */
  readonly faultOf: (refusal: Refusal) => Fault;
}

/** Until a connection stands. A runtime is on this machine or near it. */
const connectMs = 5_000;

/** The largest answer that is read whole. Ollama's description of a model lists every tensor. */
export const runtimeAnswerBytesMax = 16 * 1024 * 1024;

/**
 * HTTP to one runtime. There are no timeouts but the one for connecting, since runtimes send no byte while they queue,
 * load and read the prompt: deadlines come with the signal, and a signal that aborts closes the request at once.
 */
export class RuntimeConnection {
  readonly #pool: Pool;
  readonly #basePath: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #jsonHeaders: Readonly<Record<string, string>>;
  readonly #faultOf: ConnectionOptions["faultOf"];
  /** Scheme, host and port, for the operator. */
  readonly origin: string;

  constructor({ url, apiKey, faultOf }: ConnectionOptions) {
    const { origin, pathname } = new URL(url);
    this.origin = origin;
    this.#faultOf = faultOf;
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    this.#jsonHeaders = { ...this.#headers, "content-type": "application/json" };
    this.#pool = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: connectMs } });
    this.#basePath = pathname.replace(/\/+$/, "");
  }

  /** Asks for the text of an answer. */
  async text(question: Question): Promise<string> {
    const answer = await readText(this.stream(question), runtimeAnswerBytesMax);
    if (!answer.cut) return answer.text;
    throw new Fault("upstream_error", {
      message: `The runtime sent an answer longer than ${runtimeAnswerBytesMax} bytes (runtimeAnswerBytesMax).`,
    });
  }

  /** Asks for one JSON value. */
  async ask<Schema extends z.ZodType>(schema: Schema, question: Question): Promise<z.output<Schema>> {
    const text = await this.text(question);
    try {
      return schema.parse(JSON.parse(text));
    } catch (error) {
      throw new Fault("upstream_error", {
        message: "The runtime sent an answer that makes no sense.",
        internal: `${question.path} was not what is expected there`,
        cause: error,
      });
    }
  }

  /** Asks, and gives the body as it comes. Ending the iteration early closes the request. */
  stream(question: Question): RuntimeAnswer {
    const { signal } = question;
    return new RuntimeAnswer({ signal, faultOf: this.#faultOf, ask: (handler) => this.#ask(question, handler) });
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  #ask({ path, body, method }: Question, handler: Dispatcher.DispatchHandler): void {
    const target = { path: this.#basePath + path, headers: this.#headers };
    if (body === undefined) this.#pool.dispatch({ ...target, method: method ?? "GET" }, handler);
    else {
      const headers = this.#jsonHeaders;
      // The pool keeps it until the answer is over.
      const written = body instanceof Uint8Array ? body : ownBytes(JSON.stringify(body));
      this.#pool.dispatch({ ...target, headers, method: method ?? "POST", body: written }, handler);
    }
  }
}

async function readText(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<{ text: string; cut: boolean }> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > bytesMax) break;
  }
  return { text: Buffer.concat(pieces).toString(), cut: bytes > bytesMax };
}
