import { Readable } from "node:stream";
import { type Dispatcher, Pool } from "undici";
import type { z } from "zod";
import type { Log } from "#shared/process/log.ts";
import { Fault } from "#shared/fault/fault.ts";
import { writeLargeJson } from "./json-bodies.ts";
import { RuntimeAnswer } from "./runtime-answer.ts";
import type { RuntimeRefusal } from "./runtime-faults.ts";

/** A form in pieces that are sent behind each other, so that no file lies in memory twice. */
export interface SentForm {
  readonly type: string;
  readonly pieces: readonly Uint8Array[];
}

export interface Question {
  readonly path: string;
  /** The body, sent as JSON with POST. A request without a body is a GET. */
  readonly body?: unknown;
  /** A form with files, in place of a body. */
  readonly form?: SentForm;
  /** True if the answer is no text. */
  readonly isBinary?: boolean;
  /** The method, where it is neither GET nor POST. */
  readonly method?: "DELETE";
  /** Sent as the header of this name. */
  readonly traceparent?: string | undefined;
  readonly signal: AbortSignal;
}

interface ConnectionOptions {
  readonly url: string;
  /** Sent as a bearer token, for a runtime that was started with an API key. */
  readonly apiKey?: string | undefined;
  readonly log?: Pick<Log, "warn"> | undefined;
  /**
   * Returns the fault for a refusal. The refusal's text may hold paths, addresses and parts of the prompt, and must
   * stay internal.
   */
  readonly faultOf: (refusal: RuntimeRefusal) => Fault;
}

/**
 * Encodes into memory of its own, because a connection keeps the body until the answer is over. A slice of `Buffer.from`
 * would keep all 64 KiB of Node's pool.
 */
const encoder = new TextEncoder();

/** Timeout for connecting. A runtime is on this machine or near it. */
const connectMs = 5_000;

/** The most bytes of an answer that is read whole. Ollama's description of a model lists every tensor. */
export const runtimeAnswerBytesMax = 16 * 1024 * 1024;

/** Reads the text of an answer to its end. */
export async function wholeText(answer: RuntimeAnswer): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  await answer.read((piece) => {
    pieces.push(piece);
    bytes += piece.byteLength;
    if (bytes > runtimeAnswerBytesMax) {
      throw new Fault("upstream_error", {
        message: `The runtime sent an answer longer than ${runtimeAnswerBytesMax} bytes (runtimeAnswerBytesMax).`,
      });
    }
    return undefined;
  });
  return Buffer.concat(pieces).toString();
}

/**
 * HTTP to one runtime. Only connecting has a timeout: runtimes send no byte while they queue, load and read the prompt.
 * Deadlines come with the signal. An aborted signal closes the request at once.
 */
export class RuntimeConnection {
  readonly #pool: Pool;
  /** A pool that keeps no connection: each request gets a new one. */
  readonly #fresh: Pool;
  #connects = 0;
  readonly #basePath: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #jsonHeaders: Readonly<Record<string, string>>;
  readonly #faultOf: ConnectionOptions["faultOf"];
  readonly #log: ConnectionOptions["log"];
  /** Answers that had bytes which are no UTF-8. */
  answersNotUtf8 = 0;
  /** Scheme, host and port, shown to the operator. */
  readonly origin: string;

  constructor({ url, apiKey, faultOf, log }: ConnectionOptions) {
    const { origin, pathname } = new URL(url);
    this.origin = origin;
    this.#faultOf = faultOf;
    this.#log = log;
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    this.#jsonHeaders = { ...this.#headers, "content-type": "application/json" };
    const options = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: connectMs } };
    this.#pool = new Pool(origin, options);
    this.#pool.on("connect", () => void (this.#connects += 1));
    this.#fresh = new Pool(origin, { ...options, pipelining: 0 });
    this.#basePath = pathname.replace(/(?<!\/)\/+$/, "");
  }

  text(question: Question): Promise<string> {
    return wholeText(this.stream(question));
  }

  async ask<Schema extends z.ZodType>(schema: Schema, question: Question): Promise<z.output<Schema>> {
    const text = await this.text(question);
    try {
      return schema.parse(JSON.parse(text));
    } catch (error) {
      throw new Fault("upstream_error", {
        message: "The runtime sent an invalid answer.",
        internal: `${question.path} was not what is expected there`,
        cause: error,
      });
    }
  }

  /** Returns the answer to a request, which is sent once the answer is read. */
  stream(question: Question): RuntimeAnswer {
    const { signal } = question;
    return new RuntimeAnswer({
      signal,
      faultOf: this.#faultOf,
      onNotUtf8: () => this.#notUtf8(),
      connects: () => this.#connects,
      isBinary: question.isBinary,
      ask: (handler, { fresh }) => this.#ask(question, handler, fresh ? this.#fresh : this.#pool),
    });
  }

  #notUtf8(): void {
    this.answersNotUtf8 += 1;
    if (this.answersNotUtf8 > 1) return;
    const told = "an answer of this runtime has bytes that are no UTF-8; U+FFFD stands for each, and this is told once";
    this.#log?.warn({ place: this.origin }, told);
  }

  async close(): Promise<void> {
    await Promise.all([this.#pool.destroy(), this.#fresh.destroy()]);
  }

  /** Sends a request. Returns a promise for a large one, which is written beside the event loop. */
  #ask(question: Question, handler: Dispatcher.DispatchHandler, pool: Pool): Promise<void> | undefined {
    const { path, body, form, traceparent } = question;
    const trace = traceparent === undefined ? undefined : { traceparent };
    const method = question.method ?? (body === undefined && form === undefined ? "GET" : "POST");
    const options = { path: this.#basePath + path, method, headers: { ...this.#jsonHeaders, ...trace }, body: null };
    if (form !== undefined) {
      const size = String(form.pieces.reduce((sum, { byteLength }) => sum + byteLength, 0));
      const headers = { ...this.#headers, ...trace, "content-type": form.type, "content-length": size };
      pool.dispatch({ ...options, headers, body: Readable.from(form.pieces, { objectMode: false }) }, handler);
      return undefined;
    }
    const writing = body === undefined ? undefined : writeLargeJson(body);
    if (writing !== undefined) return writing.then((json) => void pool.dispatch({ ...options, body: json }, handler));
    if (body === undefined) pool.dispatch({ ...options, headers: this.#headers }, handler);
    else pool.dispatch({ ...options, body: encoder.encode(JSON.stringify(body)) }, handler);
    return undefined;
  }
}
