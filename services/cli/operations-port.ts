import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { z } from "zod";
import { faultEntry, isFaultCode } from "#shared/fault/fault.ts";
import {
  errorLine,
  linesMedia,
  manageLine,
  type ManageLine,
  manageLineBytesMax,
  type ProgressLine,
  type ErrorBody,
} from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import { LineCutter } from "#shared/process/line-cutter.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { FoundKey } from "./find-key.ts";
import { onOneLine } from "./table-text.ts";

const readyz = z.object({ reasons: z.array(z.string()) });
const apiPath = "/admin/v1";
/** Maximum size of an answer. No list of models is longer. */
const answerBytesMax = 64 * 1024 * 1024;

interface Dependencies {
  readonly url: string;
  readonly key: FoundKey;
  /** The trusted certificate authorities for HTTPS. Undefined for Node's own. */
  readonly ca?: string[] | undefined;
  readonly clock: Pick<Clock, "after">;
}

/** A client of a gateway's operations port, for the command line. Throws a StartFailure for every error. */
export class OperationsPort {
  readonly #url: string;
  readonly #dependencies: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#url = dependencies.url.replace(/\/+$/, "");
    this.#dependencies = dependencies;
  }

  get<Schema extends z.ZodType>(
    path: string,
    schema: Schema,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<z.output<Schema>> {
    return this.#answer("GET", path, { schema, leaving: signal });
  }

  /** Makes a change that is done at once. */
  post<Schema extends z.ZodType>(path: string, schema: Schema, body?: object): Promise<z.output<Schema>> {
    return this.#answer("POST", path, { schema, body });
  }

  async #answer<Schema extends z.ZodType>(
    method: "GET" | "POST",
    path: string,
    {
      schema,
      body,
      leaving,
    }: { readonly schema: Schema; readonly body?: object | undefined; readonly leaving?: AbortSignal | undefined },
  ): Promise<z.output<Schema>> {
    const late = new AbortController();
    const timer = this.#dependencies.clock.after(answerWithinMs, () => late.abort(new LateAnswer()));
    const signal = leaving === undefined ? late.signal : AbortSignal.any([late.signal, leaving]);
    try {
      const answer = schema.safeParse(await this.#read(await this.#ask(method, path, { body, signal })));
      if (!answer.success) throw this.#noOperationsPort();
      return answer.data;
    } finally {
      timer.cancel();
    }
  }

  /**
   * Runs a long operation and yields its progress; returns when it is done. Aborting the signal stops the operation.
   */
  async *work(
    path: string,
    asking: { readonly body: object; readonly signal: AbortSignal },
  ): AsyncGenerator<ProgressLine> {
    const response = await this.#ask("POST", path, asking);
    if (response.headers["content-type"] !== linesMedia) {
      response.destroy();
      throw this.#noOperationsPort();
    }
    const lines = new LineCutter(manageLineBytesMax, () => this.#noOperationsPort());
    for await (const piece of this.#piecesOf(response)) {
      for (const text of lines.take(piece)) {
        const line = this.#readLine(text);
        if ("error" in line) throw this.#failure(line.error);
        if ("done" in line) return;
        yield line;
      }
    }
    throw this.#brokenOff();
  }

  async #ask(
    method: "GET" | "POST",
    path: string,
    { body, signal }: { readonly body?: object | undefined; readonly signal: AbortSignal },
  ): Promise<IncomingMessage> {
    const { key, ca, clock } = this.#dependencies;
    const response = await openRequest(new URL(`${this.#url}${apiPath}${path}`), {
      method,
      headers: {
        authorization: `Bearer ${key.token.reveal()}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body && JSON.stringify(body),
      signal,
      ca,
      clock,
    }).catch((error: unknown) => {
      throw this.#unreachable(error);
    });
    if (response.statusCode === 200 || response.statusCode === 201) return response;
    const refusal = errorLine.safeParse(await this.#read(response));
    if (!refusal.success) throw this.#noOperationsPort();
    const { error } = refusal.data;
    const reasons = error.code === "auth_unavailable" ? await this.#reasons(signal) : "";
    throw this.#failure({ ...error, message: error.message + reasons }, response.statusCode);
  }

  /** Returns the gateway's own problems, to append to an error message. Empty when the gateway does not report any. */
  async #reasons(signal: AbortSignal): Promise<string> {
    try {
      const { clock } = this.#dependencies;
      const response = await openRequest(new URL(`${this.#url}/readyz`), { method: "GET", headers: {}, signal, clock });
      const { reasons } = readyz.parse(await this.#read(response));
      return reasons.length === 0 ? "" : ` The gateway says: ${reasons.join("; ")}.`;
    } catch {
      return "";
    }
  }

  /** Reads an answer as JSON. Undefined when it is not JSON. */
  async #read(response: IncomingMessage): Promise<unknown> {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of this.#piecesOf(response)) {
      pieces.push(piece);
      bytes += piece.byteLength;
      if (bytes > answerBytesMax) throw this.#noOperationsPort();
    }
    return parsed(Buffer.concat(pieces).toString());
  }

  async *#piecesOf(response: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* response;
    } catch (error) {
      throw this.#brokenOff(error);
    }
  }

  #readLine(text: string): ManageLine {
    const line = manageLine.safeParse(parsed(text));
    if (!line.success) throw this.#noOperationsPort();
    return line.data;
  }

  #failure({ message, code }: ErrorBody, status = statusOf(code)): StartFailure {
    const line = onOneLine(message);
    if (status === 401) {
      return new StartFailure(
        exitCodes.config,
        `The admin key in ${this.#dependencies.key.place} was refused: ${line}`,
      );
    }
    return new StartFailure(status >= 500 ? exitCodes.unavailable : exitCodes.failed, line);
  }

  #unreachable(error: unknown): StartFailure {
    return new StartFailure(
      exitCodes.unavailable,
      `${this.#whyUnreachable(error)}: start a gateway or \`trunkline up\`, or name another operations port with --operations-url or TRUNKLINE_OPERATIONS_URL.`,
      { cause: error },
    );
  }

  #whyUnreachable(error: unknown): string {
    if (error instanceof LateAnswer || (error instanceof Error && error.cause instanceof LateAnswer)) {
      return `There is no answer at ${this.#url} within ${answerWithinMs} ms (answerWithinMs)`;
    }
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    return code === "ECONNREFUSED" ? `Nothing listens at ${this.#url}` : `${this.#url} cannot be reached (${code})`;
  }

  #brokenOff(cause?: unknown): StartFailure {
    const message = `The gateway at ${this.#url} broke off before it had answered.`;
    return new StartFailure(exitCodes.unavailable, message, { cause });
  }

  #noOperationsPort(): StartFailure {
    return new StartFailure(
      exitCodes.unavailable,
      `What answers at ${this.#url} is no operations port of Trunkline; a gateway's is 8081 unless its TRUNKLINE_OPERATIONS_PORT says otherwise.`,
    );
  }
}

/** Returns the status of an error by its code. An error after the first line has no HTTP status of its own. */
function statusOf(code: string | null): number {
  return code !== null && isFaultCode(code) ? faultEntry(code).status : 500;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Timeout of a connection attempt. Requests other than long model actions must also be answered within it. */
const answerWithinMs = 15_000;
/** Time of silence on a connection before TCP keep-alive probes the other host. */
const keepAliveMs = 30_000;

/**
 * Sends a request and resolves with the response as soon as its status has arrived. A silent response has no timeout: a
 * model takes time to load.
 */
function openRequest(
  url: URL,
  asking: {
    readonly method: "GET" | "POST";
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string | undefined;
    readonly signal: AbortSignal;
    readonly ca?: string[] | undefined;
    readonly clock: Pick<Clock, "after">;
  },
): Promise<IncomingMessage> {
  const { method, headers, body, signal, ca, clock } = asking;
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(url, { method, headers, signal, agent: false, ...(ca === undefined ? {} : { ca }) });
    const giveUp = clock.after(answerWithinMs, () => request.destroy(new LateAnswer()));
    request.setSocketKeepAlive(true, keepAliveMs);
    request.once("socket", (socket) => socket.once("connect", () => giveUp.cancel()));
    request.once("close", () => giveUp.cancel());
    request.once("response", resolve);
    request.once("error", reject);
    request.end(body);
  });
}

class LateAnswer extends Error {
  override readonly name = "LateAnswer";
}
