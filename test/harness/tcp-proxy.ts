import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** Which way bytes go: to the server, or back from it. */
export type Direction = "there" | "back";

/**
 * A stretch of network between a client and a server on loopback, which can be made bad. What is held back is not lost,
 * as TCP loses nothing: it comes when the way is free again, unless the connection was cut meanwhile.
 */
export class TcpProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #held = new Set<Direction>();
  readonly #lanes = new Set<Lane>();
  /** Added to the way of all bytes, in each direction. */
  latencyMs = 0;

  private constructor(target: { readonly host: string; readonly port: number }) {
    this.#server = createServer((client) => this.#join(client, connect({ ...target, noDelay: true })));
  }

  /** In front of the server of a URL, whatever its scheme. */
  static async before(url: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new TcpProxy({ host: hostname, port: Number(port) });
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("the proxy has ended");
    return address.port;
  }

  /** How much waits on its way, in both directions. */
  get bytesWaiting(): number {
    return [...this.#lanes].reduce((sum, lane) => sum + lane.bytesWaiting, 0);
  }

  /** Nothing arrives any more in this direction; connections stay open, and new ones are taken. */
  hold(direction: Direction): void {
    this.#held.add(direction);
  }

  release(): void {
    this.#held.clear();
    for (const lane of this.#lanes) lane.flush();
  }

  /** Breaks every connection with whatever was on its way; new ones are taken. */
  cut(): void {
    for (const lane of this.#lanes) lane.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(client: Socket, server: Socket): void {
    client.setNoDelay(true);
    this.#lead({ from: client, to: server, direction: "there" });
    this.#lead({ from: server, to: client, direction: "back" });
  }

  #lead(way: { readonly from: Socket; readonly to: Socket; readonly direction: Direction }): void {
    const lane = new Lane({
      ...way,
      isHeld: () => this.#held.has(way.direction),
      latencyMs: () => this.latencyMs,
    });
    this.#lanes.add(lane);
    way.from.once("close", () => this.#lanes.delete(lane));
  }
}

/** One direction of one connection. */
class Lane {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #isHeld: () => boolean;
  readonly #waiting: { readonly chunk: Buffer; readonly dueAtMs: number }[] = [];

  constructor(options: {
    readonly from: Socket;
    readonly to: Socket;
    readonly isHeld: () => boolean;
    readonly latencyMs: () => number;
  }) {
    const { from, to, isHeld, latencyMs } = options;
    this.#from = from;
    this.#to = to;
    this.#isHeld = isHeld;
    from.on("data", (chunk: Buffer) => {
      const delayMs = latencyMs();
      this.#waiting.push({ chunk, dueAtMs: performance.now() + delayMs });
      if (delayMs === 0) this.flush();
      else setTimeout(() => this.flush(), delayMs + 1);
    });
    // Whatever ends a connection at one end ends it at the other.
    from.on("error", () => undefined);
    from.once("close", () => to.destroy());
  }

  get bytesWaiting(): number {
    return this.#waiting.reduce((sum, { chunk }) => sum + chunk.byteLength, 0);
  }

  flush(): void {
    const nowMs = performance.now();
    for (let [next] = this.#waiting; next !== undefined; [next] = this.#waiting) {
      if (this.#isHeld() || next.dueAtMs > nowMs) return;
      this.#waiting.shift();
      this.#to.write(next.chunk);
    }
  }

  destroy(): void {
    this.#from.destroy();
  }
}
