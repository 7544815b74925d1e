import { once } from "node:events";
import http from "node:http";
import { connect, type Socket } from "node:net";

/** The faults of a proxy in front of a site. */
export interface ProxyFaults {
  /** Holds each answer back until it is whole. */
  buffers?: boolean;
  /** Passes no WebSocket on. */
  dropsUpgrades?: boolean;
  /** How far its clock is ahead of the site's. */
  clockAheadMs?: number;
}

/** A proxy in front of a site, with faults that a test plants while it runs. */
export class FaultyProxy implements AsyncDisposable {
  faults: ProxyFaults = {};
  readonly origin: string;
  readonly #server: http.Server;
  readonly #target: URL;
  readonly #tunnels = new Set<Socket>();

  private constructor(server: http.Server, { origin, target }: { readonly origin: string; readonly target: URL }) {
    this.#server = server;
    this.#target = target;
    this.origin = origin;
    server.on("request", (request, response) => this.#pass(request, response));
    server.on("upgrade", (request: http.IncomingMessage, socket: Socket, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
  }

  static async start(target: string): Promise<FaultyProxy> {
    const server = http.createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (typeof address !== "object" || address === null) throw new Error("the proxy does not listen");
    return new FaultyProxy(server, { origin: `http://127.0.0.1:${address.port}`, target: new URL(target) });
  }

  #pass(request: http.IncomingMessage, response: http.ServerResponse): void {
    const { method, url, headers } = request;
    const asking = http.request(new URL(url ?? "/", this.#target), { method, headers }, (answer) => {
      const told = { ...answer.headers, ...this.#dateNow() };
      if (this.faults.buffers !== true) {
        answer.pipe(response.writeHead(answer.statusCode ?? 502, told));
        return;
      }
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.once("end", () => response.writeHead(answer.statusCode ?? 502, told).end(Buffer.concat(pieces)));
    });
    asking.once("error", () => response.destroy());
    request.pipe(asking);
  }

  #dateNow(): { readonly date?: string } {
    const { clockAheadMs } = this.faults;
    return clockAheadMs === undefined ? {} : { date: new Date(Date.now() + clockAheadMs).toUTCString() };
  }

  #upgrade({ method, url, rawHeaders }: http.IncomingMessage, socket: Socket, head: Buffer): void {
    if (this.faults.dropsUpgrades === true) {
      socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      return;
    }
    const far = connect(Number(this.#target.port), this.#target.hostname);
    for (const each of [socket, far]) {
      this.#tunnels.add(each);
      each.on("error", () => undefined);
      each.once("close", () => {
        this.#tunnels.delete(each);
        (each === far ? socket : far).destroy();
      });
    }
    const lines = rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join("");
    far.write(`${method} ${url} HTTP/1.1\r\n${lines}\r\n`);
    far.write(head);
    socket.pipe(far).pipe(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#tunnels) socket.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
