import { Fault } from "../fault/fault.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";

/**
 * A gateway's or an agent's connection to the broker. NATS and the in-process broker implement it.
 *
 * Delivery is at most once. Messages of one connection arrive at another in the order of publishing, across subjects.
 * Messages published while the connection is down are dropped: `publish` returns "disconnected", and the caller
 * decides. A message that was handed over just before a disconnect may be lost without an error. The protocol above
 * numbers the messages that must not be lost.
 */
export interface Broker {
  /** True if the connection is up and usable now. */
  readonly connected: boolean;
  /** Time of the last connect, by the process's monotonic clock. Silence counts from here at the earliest. */
  readonly connectedSinceMs: number;
  /** Explains to people why the broker is unreachable, or which grant it denies. Undefined when all is well. */
  readonly trouble: string | undefined;
  /**
   * Identifies the current connection to the broker's operators. Undefined where the broker has no connection names.
   */
  readonly connectionId: string | undefined;
  /** Median of the latest round trips to the broker. 0 within a process, or before the first measurement. */
  readonly roundTripMs: number;
  /** The largest message that the broker carries; a larger one makes `publish` throw. */
  readonly payloadBytesMax: number;

  /**
   * Publishes a message. With `reply`, a message without subscribers comes back to the reply subject as an empty
   * message whose `noResponders` is true, provided that this connection subscribes to that subject.
   */
  publish(subject: string, data: Uint8Array, options?: PublishOptions): PublishOutcome;

  /**
   * Subscribes to a subject, in which `*` stands for one token and a final `>` for one or more. The subscription
   * survives reconnects. An error that the handler throws is logged and stops nothing.
   */
  subscribe(pattern: string, handler: (message: BrokerMessage) => void): Subscription;

  /**
   * Declares that this process can do without the subjects of a pattern. When the broker denies one of them, it calls
   * the listener with the reason. Such a denial is no `trouble`, and `flush` does not reject for it.
   */
  onDenied(pattern: string, listener: (reason: string) => void): Subscription;

  /** Calls the listener after every change of `connected`. */
  onChange(listener: (connected: boolean) => void): Subscription;

  /**
   * Resolves when the broker has received every earlier publish and subscription. Rejects when the connection is down,
   * or when the broker has refused this connection a subscription.
   */
  flush(): Promise<void>;

  /** Sends the buffered messages and ends the connection for good. */
  close(): Promise<void>;
}

export type PublishOutcome = "sent" | "disconnected";

export interface PublishOptions {
  readonly reply?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface BrokerMessage {
  readonly subject: string;
  /** Read-only: other subscribers of the same process share these bytes. */
  readonly data: Uint8Array;
  readonly reply: string | undefined;
  /**
   * True if the broker reports that the message published with this subject as its `reply` had no subscribers (NATS:
   * 503).
   */
  readonly noResponders: boolean;
  /** The headers by their names, exactly as the publisher wrote them. Undefined without headers. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

export interface Subscription {
  end(): void;
}

/**
 * The fault for a message above the broker's payload limit. Bodies and answers are split to fit before, so it is a bug.
 */
export function payloadTooLarge(bytes: number, payloadBytesMax: number): Fault {
  return new Fault("internal_error", {
    message: "A message is larger than the broker's payload limit.",
    internal: `a message of ${bytes} bytes is over the broker's payload limit of ${payloadBytesMax} bytes`,
  });
}

/** Throws when the broker denies this process a publish or a subscription that it made before the latest flush. */
export function assertGrants({ trouble }: Pick<Broker, "trouble">): void {
  if (trouble === undefined) return;
  throw new StartFailure(
    exitCodes.config,
    `${trouble}: give its user that grant (infra/nats.conf shows all), or set TRUNKLINE_NATS_URL or TRUNKLINE_NATS_CREDS to the credential that was made for this process.`,
  );
}

/** Returns true if the subject matches the pattern: `*` is one token, a final `>` is one token or more. */
export function subjectMatches(pattern: string, subject: string): boolean {
  return tokensMatch(pattern.split("."), subject.split("."));
}

/** Like `subjectMatches`, for a caller that splits each text once. */
export function tokensMatch(wanted: readonly string[], given: readonly string[]): boolean {
  for (let index = 0; index < wanted.length; index += 1) {
    const token = wanted[index];
    if (token === ">") return given.length > index;
    if (index >= given.length) return false;
    if (token !== "*" && token !== given[index]) return false;
  }
  return wanted.length === given.length;
}
