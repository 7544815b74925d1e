import { once } from "node:events";
import { createServer, request as ask, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";

/** One request that passed the recorder, with its answer. */
export interface RecordedExchange {
  readonly method: string;
  /** The path with its query. */
  readonly url: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Undefined when the request had no JSON body. */
  readonly body: unknown;
  readonly status: number;
  readonly answerHeaders: Readonly<IncomingHttpHeaders>;
  readonly answer: string;
}

/** A proxy between a client and a gateway. It passes every request on as it is and keeps it with its answer. */
export class Recorder implements AsyncDisposable {
  /** The exchanges whose answers ended, in the order of their requests. */
  readonly origin: string;
  readonly #server: Server;
  readonly #target: URL;
  readonly #begun: (RecordedExchange | undefined)[] = [];

  private constructor(server: Server, { origin, target }: { readonly origin: string; readonly target: URL }) {
    this.#server = server;
    this.#target = target;
    this.origin = origin;
    server.on("request", (request, response) => {
      this.#pass(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  static async before(target: string): Promise<Recorder> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (typeof address !== "object" || address === null) throw new Error("the recorder does not listen");
    return new Recorder(server, { origin: `http://127.0.0.1:${address.port}`, target: new URL(target) });
  }

  /** The exchanges whose answers ended, in the order of their requests. */
  get exchanges(): readonly RecordedExchange[] {
    return this.#begun.filter((exchange) => exchange !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #pass(from: IncomingMessage, to: ServerResponse): Promise<void> {
    const place = this.#begun.push(undefined) - 1;
    const { method = "GET", url = "/", headers } = from;
    const sent = await buffer(from);
    const { hostname, port } = this.#target;
    const onward = ask({ hostname, port, method, path: url, headers: { ...headers, host: this.#target.host } });
    to.once("close", () => onward.destroy());
    onward.end(sent);
    const [answered] = (await once(onward, "response")) as [IncomingMessage];
    const { statusCode: status = 0, headers: answerHeaders } = answered;
    to.writeHead(status, answerHeaders);
    const pieces: Buffer[] = [];
    for await (const piece of answered as AsyncIterable<Buffer>) {
      pieces.push(piece);
      to.write(piece);
    }
    to.end();
    const answer = Buffer.concat(pieces).toString();
    this.#begun[place] = { method, url, headers, body: jsonIn(sent), status, answerHeaders, answer };
  }
}

function jsonIn(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
