import { Pool } from "undici";
import type { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { ollamaStatusFault } from "./ollama-fault.ts";

interface Question {
  readonly path: string;
  /** Sent as JSON with POST; without it the question is a GET. */
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

/** Until a connection stands. Ollama is on this machine or near it. */
const connectMs = 5_000;

/** The largest answer that is read whole. `/api/show` lists every tensor of a model. */
export const runtimeAnswerBytesMax = 16 * 1024 * 1024;
const errorTextBytesMax = 64 * 1024;

/**
 * HTTP to one Ollama. There are no timeouts but the one for connecting, since Ollama sends no byte while it queues,
 * loads and reads the prompt: deadlines come with the signal, and a signal that aborts closes the request at once.
 */
export class OllamaConnection {
  readonly #pool: Pool;
  readonly #basePath: string;

  constructor(url: string) {
    const { origin, pathname } = new URL(url);
    this.#pool = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: connectMs } });
    this.#basePath = pathname.replace(/\/+$/, "");
  }

  /** Asks for one JSON value. */
  async ask<Schema extends z.ZodType>(schema: Schema, question: Question): Promise<z.output<Schema>> {
    const answer = await readText(this.stream(question), runtimeAnswerBytesMax);
    if (answer.cut) {
      throw new Fault("upstream_error", {
        message: `The runtime sent an answer longer than ${runtimeAnswerBytesMax} bytes (runtimeAnswerBytesMax).`,
      });
    }
    try {
      return schema.parse(JSON.parse(answer.text));
    } catch (error) {
      throw new Fault("upstream_error", {
        message: "The runtime sent an answer that makes no sense.",
        internal: `${question.path} was not what Ollama answers`,
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
        throw ollamaStatusFault({ status: statusCode, text });
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
    const { path, body, signal } = question;
    const target = { path: this.#basePath + path, signal };
    if (body === undefined) return this.#pool.request({ ...target, method: "GET" });
    const headers = { "content-type": "application/json" };
    return this.#pool.request({ ...target, method: "POST", headers, body: JSON.stringify(body) });
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

function silenceFault(error: unknown, answered: boolean): Fault {
  return new Fault(answered ? "upstream_error" : "runtime_offline", {
    message: answered ? "The runtime broke off its answer." : "The runtime does not answer.",
    internal: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    cause: error,
  });
}
