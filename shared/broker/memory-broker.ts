import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import {
  type Broker,
  type BrokerMessage,
  type PublishOptions,
  type PublishOutcome,
  type Subscription,
  payloadTooLarge,
  tokensMatch,
} from "./broker.ts";

/**
 * The in-process broker of the embedded default. It implements only those parts of NATS that the protocol uses. Each
 * connection has one ordered queue, so that a cancel never overtakes its job. A queue that grows past its limit cuts
 * its connection, as a NATS server cuts a slow consumer.
 */
export class MemoryBroker {
  readonly #options: MemoryConnectionOptions;

  constructor({ payloadBytesMax = 1024 * 1024, pendingBytesMax = 64 * 1024 * 1024, ...options }: MemoryBrokerOptions) {
    this.#options = { ...options, payloadBytesMax, pendingBytesMax, connections: new Set() };
  }

  connect(): MemoryConnection {
    const connection = new MemoryConnection(this.#options);
    this.#options.connections.add(connection);
    return connection;
  }
}

interface MemoryBrokerOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly payloadBytesMax?: number;
  readonly pendingBytesMax?: number;
}

interface MemoryConnectionOptions extends Required<MemoryBrokerOptions> {
  readonly connections: Set<MemoryConnection>;
}

interface Interest {
  readonly pattern: readonly string[];
  readonly handler: (message: BrokerMessage) => void;
}

export class MemoryConnection implements Broker {
  readonly roundTripMs = 0;
  readonly payloadBytesMax: number;
  readonly connectionId = undefined;
  connected = true;
  connectedSinceMs: number;

  readonly #options: MemoryConnectionOptions;
  readonly #interests = new Set<Interest>();
  readonly #listeners = new Set<(connected: boolean) => void>();
  #queue: { readonly interest: Interest; readonly message: BrokerMessage }[] = [];
  #queuedBytes = 0;
  #closed = false;

  constructor(options: MemoryConnectionOptions) {
    this.#options = options;
    this.payloadBytesMax = options.payloadBytesMax;
    this.connectedSinceMs = options.clock.now();
  }

  get trouble(): string | undefined {
    return this.connected ? undefined : "the in-process connection is cut";
  }

  publish(subject: string, data: Uint8Array, options: PublishOptions = {}): PublishOutcome {
    if (data.byteLength > this.payloadBytesMax) throw payloadTooLarge(data.byteLength, this.payloadBytesMax);
    if (!this.connected) return "disconnected";
    const { reply, headers } = options;
    const message: BrokerMessage = { subject, data, reply, noResponders: false, headers };
    const tokens = subject.split(".");
    let delivered = false;
    for (const connection of this.#options.connections) {
      if (connection.#receive(tokens, message)) delivered = true;
    }
    if (!delivered && reply !== undefined) {
      const empty = new Uint8Array();
      const nobody = { subject: reply, data: empty, reply: undefined, noResponders: true, headers: undefined };
      this.#receive(reply.split("."), nobody);
    }
    return "sent";
  }

  subscribe(pattern: string, handler: (message: BrokerMessage) => void): Subscription {
    const interest = { pattern: pattern.split("."), handler };
    this.#interests.add(interest);
    return { end: () => void this.#interests.delete(interest) };
  }

  /** Denies nothing. */
  onDenied(): Subscription {
    return { end: () => undefined };
  }

  onChange(listener: (connected: boolean) => void): Subscription {
    this.#listeners.add(listener);
    return { end: () => void this.#listeners.delete(listener) };
  }

  async flush(): Promise<void> {
    if (!this.connected) throw new Error("the in-process connection is cut");
  }

  async close(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#closed = true;
    this.cut();
    this.#interests.clear();
    this.#listeners.clear();
    this.#options.connections.delete(this);
  }

  /** Breaks the connection as a network would: messages queued for this side are lost, and no more arrive. */
  cut(): void {
    if (!this.connected) return;
    this.connected = false;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#tell();
  }

  restore(): void {
    if (this.connected || this.#closed) return;
    this.connected = true;
    this.connectedSinceMs = this.#options.clock.now();
    this.#tell();
  }

  #receive(tokens: readonly string[], message: BrokerMessage): boolean {
    if (!this.connected) return false;
    let wanted = false;
    for (const interest of this.#interests) {
      if (!tokensMatch(interest.pattern, tokens)) continue;
      wanted = true;
      if (this.#queue.length === 0) setImmediate(() => this.#deliver());
      this.#queue.push({ interest, message });
      this.#queuedBytes += message.data.byteLength;
    }
    if (this.#queuedBytes > this.#options.pendingBytesMax) {
      this.#options.log.warn(
        { pendingBytesMax: this.#options.pendingBytesMax },
        "an in-process connection took its messages too slowly (pendingBytesMax) and was cut",
      );
      this.cut();
      setImmediate(() => this.restore());
    }
    return wanted;
  }

  #deliver(): void {
    const batch = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    for (const { interest, message } of batch) {
      if (!this.connected) return;
      if (!this.#interests.has(interest)) continue;
      try {
        interest.handler(message);
      } catch (error) {
        this.#options.log.error({ err: error, subject: message.subject }, "a broker message could not be handled");
      }
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) listener(this.connected);
  }
}
