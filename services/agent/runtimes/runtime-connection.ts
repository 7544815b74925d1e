import { Pool } from "undici";
import type { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";

export interface Question {
  readonly path: string;
  /** Sent as JSON with POST; without it the question is a GET. */
  readonly body?: unknown;
  /** Where it is neither of the two. */
  readonly method?: "DELETE";
  readonly signal: AbortSignal;
}

/** What a runtime says that is not a success. */
export interface Refusal {
  readonly status: number;
  /** At most `errorTextBytesMax` of it. */
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
const errorTextBytesMax = 64 * 1024;

/**
 * HTTP to one runtime. There are no timeouts but the one for connecting, since runtimes send no byte while they queue,
 * load and read the prompt: deadlines come with the signal, and a signal that aborts closes the request at once.
 */
export class RuntimeConnection {
  readonly #pool: Pool;
  readonly #basePath: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #faultOf: ConnectionOptions["faultOf"];
  /** Scheme, host and port, for the operator. */
  readonly origin: string;

  constructor({ url, apiKey, faultOf }: ConnectionOptions) {
    const { origin, pathname } = new URL(url);
    this.origin = origin;
    this.#faultOf = faultOf;
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
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

  /** Asks, and yields the body as it comes. Ending the iteration early closes the request. */
  async *stream(question: Question): AsyncGenerator<Uint8Array> {
    let answered = false;
    question.signal.throwIfAborted();
    try {
      const { statusCode, body } = await unlessAborted(question.signal, this.#request(question));
      answered = true;
      if (statusCode !== 200) {
        const { text } = await readText(body, errorTextBytesMax);
        throw this.#faultOf({ status: statusCode, text });
      }
      yield* body;
    } catch (error) {
      if (question.signal.aborted) throw question.signal.reason;
      throw error instanceof Fault ? error : silenceFault(error, answered);
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  // `dispatch` would save some 20 µs a request and a part of each chunk's cost, for a response
  // body with backpressure written by hand. It would change nothing outside this method and `stream`.
  #request(question: Question): ReturnType<Pool["request"]> {
    const { path, body, method, signal } = question;
    const target = { path: this.#basePath + path, signal };
    if (body === undefined) return this.#pool.request({ ...target, method: method ?? "GET", headers: this.#headers });
    const headers = { ...this.#headers, "content-type": "application/json" };
    return this.#pool.request({ ...target, method: method ?? "POST", headers, body: JSON.stringify(body) });
  }
}

/** undici notices a signal only once a request is on its way, and so not while it still connects. */
async function unlessAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
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

/** What undici and the kernel say of a connection that stood and is gone. */
const brokenOff = new Set<unknown>(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

function silenceFault(error: unknown, answered: boolean): Fault {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return new Fault(answered ? "upstream_error" : "runtime_offline", {
    message: answered ? "The runtime broke off its answer." : "The runtime does not answer.",
    internal: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    runtimeDied: answered || brokenOff.has(code),
    cause: error,
  });
}
