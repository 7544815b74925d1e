import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { Pool, type Dispatcher } from "undici";
import { serveChats } from "./chat-server.ts";

/** Run as `node plain-proxy-server.ts <port> <port of the far end> <digest of the key>`. */
const [port, farEndPort, digest = ""] = process.argv.slice(2);

const upstream = new Pool(`http://127.0.0.1:${farEndPort}`, { headersTimeout: 0, bodyTimeout: 0 });
const headers = { "content-type": "application/json" };
const ofOneConnection = ["connection", "keep-alive", "transfer-encoding"];

/** Hands an answer on as it comes: all that one read brought leaves in one write. */
class Passage implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  #controller: Dispatcher.DispatchController | undefined;
  #pieces: Buffer[] = [];
  #ended = false;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.once("close", () => {
      if (!this.#ended) this.#controller?.abort(new Error("the client left"));
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#response.destroyed) controller.abort(new Error("the client left"));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, given: IncomingHttpHeaders): void {
    for (const name of ofOneConnection) delete given[name];
    this.#response.writeHead(status, given);
  }

  onResponseData(_: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#pieces.push(piece) === 1) queueMicrotask(() => this.#write());
  }

  onResponseEnd(): void {
    this.#ended = true;
    this.#response.end(this.#taken());
  }

  onResponseError(): void {
    this.#ended = true;
    if (this.#response.headersSent) this.#response.destroy();
    else this.#response.writeHead(502).end();
  }

  #write(): void {
    if (this.#ended || this.#pieces.length === 0 || this.#response.write(this.#taken())) return;
    this.#controller?.pause();
    this.#response.once("drain", () => this.#controller?.resume());
  }

  #taken(): Buffer {
    const [first = Buffer.alloc(0), ...others] = this.#pieces;
    this.#pieces = [];
    return others.length === 0 ? first : Buffer.concat([first, ...others]);
  }
}

await serveChats({
  port: Number(port),
  digest,
  pass: (body, response) =>
    void upstream.dispatch({ path: "/v1/chat/completions", method: "POST", headers, body }, new Passage(response)),
});
