import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** A part of a body: sent as it is, each in a packet of its own; a promise holds back what follows it. */
export type ReplayPiece = string | Uint8Array | Promise<unknown>;

/** An answer, byte by byte as a server gave it. */
export interface Replay {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | readonly ReplayPiece[];
  /**
   * How the body ends: `chunked` unless told; `closed` is the end of the connection and nothing else, as of a server
   * that speaks HTTP/1.0; `cut` is a connection that breaks before its end.
   */
  readonly end?: "chunked" | "closed" | "cut";
}

export interface ReplayedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<IncomingMessage["headers"]>;
  /** As it was sent; parsed where it is JSON. */
  readonly body: unknown;
}

/**
 * A server on a port of its own that knows nothing: it gives each path the answer that a test laid down for it, and
 * keeps what it was sent. For what a runtime really said, where the fakes say what they are meant to.
 */
export class ReplayServer implements AsyncDisposable {
  readonly requests: ReplayedRequest[] = [];
  readonly #server: Server;
  readonly #replays = new Map<string, Replay>();

  private constructor() {
    this.#server = createServer((request, response) => {
      // A client that leaves in the middle is what some tests are about.
      response.on("error", () => {});
      this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  static async start(replays: Readonly<Record<string, Replay>> = {}): Promise<ReplayServer> {
    const replay = new ReplayServer();
    for (const [path, answer] of Object.entries(replays)) replay.answers(path, answer);
    await new Promise<void>((resolve, reject) => {
      replay.#server.once("error", reject);
      replay.#server.listen({ port: 0, host: "127.0.0.1" }, resolve);
    });
    return replay;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** From now on this path is answered like this; a path that nobody laid down is a 404 without a word. */
  answers(path: string, replay: Replay): void {
    this.#replays.set(path, replay);
  }

  requestsTo(path: string): ReplayedRequest[] {
    return this.requests.filter((request) => request.path === path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url: path = "", headers } = request;
    const text = (await buffer(request)).toString();
    this.requests.push({ method, path, headers, body: parsed(text) });
    const { status = 200, headers: told, body = "", end = "chunked" } = this.#replays.get(path) ?? { status: 404 };
    if (end === "closed") response.useChunkedEncodingByDefault = false;
    response.writeHead(status, { ...told, ...(end === "closed" && { connection: "close" }) });
    for (const piece of typeof body === "string" ? [body] : body) await send(response, piece);
    if (end === "cut") response.destroy();
    else response.end();
  }
}

async function send(response: ServerResponse, piece: ReplayPiece): Promise<void> {
  if (piece instanceof Promise) {
    await piece;
    return;
  }
  if (piece.length === 0) return;
  await new Promise<void>((resolve) => void response.write(piece, () => resolve()));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
