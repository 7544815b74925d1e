/**
 * A connection to the broker, as gateway and agent see it: the port of NATS and of the in-process broker.
 *
 * Delivery is at most once. Messages of one connection arrive at another in the order in which they were published,
 * across subjects. What is published while the connection is down is not kept: `publish` says so, and the caller
 * decides. A message that was handed over when the connection broke may be lost without a word; the protocol above
 * numbers what must not be.
 */
export interface Broker {
  /** Up and usable just now. */
  readonly connected: boolean;
  /** When the connection last came up, by the process's monotonic clock: silence counts from here at the earliest. */
  readonly connectedSinceMs: number;
  /** The largest message that the broker carries; a larger one makes `publish` throw. */
  readonly payloadBytesMax: number;

  /**
   * With `reply`, a message that nobody subscribes to comes back to that subject as an empty message whose
   * `nobodyThere` is true, provided that this connection subscribes to it.
   */
  publish(subject: string, data: Uint8Array, options?: PublishOptions): PublishOutcome;

  /**
   * Subscribes to a subject, in which `*` stands for one token and a final `>` for one or more. The subscription
   * outlives reconnects. What the handler throws is logged and stops nothing.
   */
  subscribe(pattern: string, handler: (message: BrokerMessage) => void): Subscription;

  /** Tells of every change of `connected`, after it has happened. */
  onChange(listener: (connected: boolean) => void): Subscription;

  /**
   * Resolves when the broker has everything that was published and subscribed to before. Rejects when the connection is
   * down, or when the broker has refused this connection a subscription.
   */
  flush(): Promise<void>;

  /** Sends what is still to be sent and ends the connection for good. */
  close(): Promise<void>;
}

export type PublishOutcome = "sent" | "disconnected";

export interface PublishOptions {
  readonly reply?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface BrokerMessage {
  readonly subject: string;
  /** Read only, and shared with other subscribers of the same process. */
  readonly data: Uint8Array;
  readonly reply: string | undefined;
  /** The broker's own word that nobody subscribes to what was published with this subject as its reply. */
  readonly nobodyThere: boolean;
  header(name: string): string | undefined;
}

export interface Subscription {
  end(): void;
}
