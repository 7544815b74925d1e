import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { SeededRandom } from "./seeded-random.ts";

/** Which way bytes go: to the server, or back from it. */
export type Direction = "there" | "back";

/**
 * Sees what comes to the proxy on one connection in one direction, before it goes on. A number that it returns is a place
 * in the chunk: from there on that direction is held.
 */
export type Inspector = (chunk: Buffer) => number | undefined;

/** Default of `bufferBytesMax`. */
const bufferBytes = 4 * 1024 * 1024;
/** A paced direction passes on slices of this duration, so that bytes trickle as on a real line. */
const pacedSliceMs = 20;

/**
 * A stretch of network between a client and a server on loopback, which can be made bad. What is held back is not lost,
 * as TCP loses nothing: it comes when the way is free again, unless the connection was cut meanwhile.
 */
export class TcpProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #held = new Set<Direction>();
  readonly #lanes = new Set<Lane>();
  readonly #inspect: ((direction: Direction) => Inspector) | undefined;
  #target: { readonly host: string; readonly port: number };
  #random = Math.random;
  #refuses = false;
  readonly #passed = { there: 0, back: 0 };
  /** Added to the way of all bytes, in each direction. */
  latencyMs = 0;
  /** As much more at the most, a new draw for every chunk; no chunk overtakes another. */
  jitterMs = 0;
  /** The most bytes that are written at once; each slice is a packet of its own. */
  sliceBytesMax = Number.POSITIVE_INFINITY;
  /** Drain rate of each connection, by direction. */
  readonly bytesPerSecond = { there: Number.POSITIVE_INFINITY, back: Number.POSITIVE_INFINITY };
  /** The proxy stops reading from a sender when more than this waits, so that back-pressure reaches it. */
  bufferBytesMax = bufferBytes;

  private constructor(
    target: { readonly host: string; readonly port: number },
    inspect?: (direction: Direction) => Inspector,
  ) {
    this.#inspect = inspect;
    this.#target = target;
    this.#server = createServer((client) => {
      if (this.#refuses) client.resetAndDestroy();
      else this.#join(client, connect({ ...this.#target, noDelay: true }));
    });
  }

  /** In front of the server of a URL, whatever its scheme. `inspect` makes an inspector for each direction of each connection. */
  static async before(url: string, inspect?: (direction: Direction) => Inspector): Promise<TcpProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new TcpProxy({ host: hostname, port: Number(port) }, inspect);
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

  /** All jitter from now on follows from this number. */
  seed(seed: number): void {
    const random = new SeededRandom(seed);
    this.#random = () => random.next();
  }

  /** How much has arrived in this direction, over all connections that were ever made. */
  bytesPassed(direction: Direction): number {
    return this.#passed[direction];
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

  /** Breaks every connection by a RST at both of its ends, as a host does that has lost its memory of them. */
  reset(): void {
    for (const lane of this.#lanes) lane.reset();
  }

  /** Whether new connections are reset as they come, as if nobody listened. */
  refuse(refuses: boolean): void {
    this.#refuses = refuses;
  }

  /** New connections lead to another server, as a name does after a failover; those that there are break. */
  leadTo(url: string): void {
    const { hostname, port } = new URL(url);
    this.#target = { host: hostname, port: Number(port) };
    this.cut();
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
    const { direction } = way;
    const lane = new Lane({
      ...way,
      isHeld: () => this.#held.has(direction),
      hold: () => this.hold(direction),
      inspector: this.#inspect?.(direction),
      badness: () => ({
        delayMs: this.latencyMs + (this.jitterMs === 0 ? 0 : this.#random() * this.jitterMs),
        sliceBytesMax: this.sliceBytesMax,
        bytesPerSecond: this.bytesPerSecond[direction],
        bufferBytesMax: this.bufferBytesMax,
      }),
      onPassed: (bytes) => void (this.#passed[direction] += bytes),
    });
    this.#lanes.add(lane);
    way.from.once("close", () => this.#lanes.delete(lane));
  }
}

interface Badness {
  readonly delayMs: number;
  readonly sliceBytesMax: number;
  readonly bytesPerSecond: number;
  readonly bufferBytesMax: number;
}

/** One direction of one connection. */
class Lane {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #isHeld: () => boolean;
  readonly #hold: () => void;
  readonly #inspector: Inspector | undefined;
  readonly #badness: () => Badness;
  readonly #onPassed: (bytes: number) => void;
  readonly #waiting: { readonly chunk: Buffer; readonly dueAtMs: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #bytesWaiting = 0;
  #lastDueAtMs = 0;

  constructor(options: {
    readonly from: Socket;
    readonly to: Socket;
    readonly isHeld: () => boolean;
    readonly hold: () => void;
    readonly inspector: Inspector | undefined;
    readonly badness: () => Badness;
    readonly onPassed: (bytes: number) => void;
  }) {
    const { from, to, isHeld, hold, inspector, badness, onPassed } = options;
    this.#onPassed = onPassed;
    this.#from = from;
    this.#to = to;
    this.#isHeld = isHeld;
    this.#hold = hold;
    this.#inspector = inspector;
    this.#badness = badness;
    from.on("data", (chunk: Buffer) => this.#take(chunk));
    // Whatever ends a connection at one end ends it at the other.
    from.on("error", () => undefined);
    to.on("drain", () => this.#letSend());
    from.once("close", () => {
      clearTimeout(this.#timer);
      to.destroy();
    });
  }

  get bytesWaiting(): number {
    return this.#bytesWaiting;
  }

  flush(): void {
    const nowMs = performance.now();
    for (let [next] = this.#waiting; next !== undefined; [next] = this.#waiting) {
      if (this.#isHeld()) break;
      if (next.dueAtMs > nowMs) {
        this.#flushIn(next.dueAtMs - nowMs);
        break;
      }
      this.#waiting.shift();
      this.#bytesWaiting -= next.chunk.byteLength;
      this.#to.write(next.chunk);
      this.#onPassed(next.chunk.byteLength);
    }
    this.#letSend();
  }

  /** A timer may come a little early, and then it is set once more. */
  #flushIn(waitMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.flush();
    }, waitMs);
  }

  /** Whoever sends goes on when there is room on the line, also where the other end takes nothing. */
  #letSend(): void {
    const waiting = this.#bytesWaiting + this.#to.writableLength;
    if (waiting > this.#badness().bufferBytesMax) this.#from.pause();
    else if (this.#from.isPaused()) this.#from.resume();
  }

  destroy(): void {
    this.#from.destroy();
  }

  reset(): void {
    this.#from.resetAndDestroy();
  }

  #take(chunk: Buffer): void {
    const heldFrom = this.#inspector?.(chunk);
    if (heldFrom === undefined) {
      this.#queue(chunk);
      return;
    }
    this.#queue(chunk.subarray(0, heldFrom));
    this.#hold();
    this.#queue(chunk.subarray(heldFrom));
  }

  #queue(chunk: Buffer): void {
    const { delayMs, bytesPerSecond, ...badness } = this.#badness();
    const pacedBytes = Math.max(1, Math.ceil((bytesPerSecond * pacedSliceMs) / 1_000));
    const sliceBytesMax = Math.min(badness.sliceBytesMax, pacedBytes);
    const nowMs = performance.now();
    for (let at = 0; at < chunk.byteLength; at += sliceBytesMax) {
      const slice = chunk.subarray(at, Math.min(chunk.byteLength, at + sliceBytesMax));
      const behindLast =
        Math.max(bytesPerSecond === Number.POSITIVE_INFINITY ? 0 : nowMs, this.#lastDueAtMs) +
        (slice.byteLength / bytesPerSecond) * 1_000;
      const dueAtMs = Math.max(delayMs === 0 ? 0 : nowMs + delayMs, behindLast);
      this.#waiting.push({ chunk: slice, dueAtMs });
      this.#bytesWaiting += slice.byteLength;
      this.#lastDueAtMs = Math.max(dueAtMs, nowMs);
    }
    this.flush();
  }
}
