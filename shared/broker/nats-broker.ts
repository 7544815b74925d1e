import { readFileSync } from "node:fs";
import {
  AuthorizationError,
  credsAuthenticator,
  PermissionViolationError,
  wsconnect,
  type ConnectionOptions,
  type Msg,
  type NatsConnection,
  type Subscription as NatsSubscription,
} from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import { exitCodes, StartFailure } from "../process/start-failure.ts";
import { atTurnEnd } from "../process/turn-end.ts";
import { limits } from "../protocol/limits.ts";
import type { Broker, BrokerMessage, PublishOptions, PublishOutcome, Subscription } from "./broker.ts";
import { headerLines } from "./nats-header-lines.ts";
import { readNatsHeaders } from "./nats-headers.ts";
import { readNatsUrl } from "./nats-url.ts";
import { payloadTooLarge } from "./payload-too-large.ts";
import { ReconnectPace } from "./reconnect-pace.ts";

interface NatsOptions {
  /** One URL or several with commas between: `nats://`, `tls://`, `ws://` or `wss://`, with `user:password@` if need be. */
  readonly url: string;
  readonly credentialsFile?: string | undefined;
  /** How this connection calls itself towards the server's operators. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** How soon a frozen server is noticed. */
const connectTimeoutMs = 2_000;
const pingIntervalMs = 1_000;
const pingsUnansweredMax = 1;
/** Refusals that were logged once are not logged again; there are few, and this bounds what is remembered. */
const refusalsToldMax = 100;

/** Connects once, or fails with a line for the operator; from then on it reconnects by itself for ever. */
export async function connectNats(options: NatsOptions): Promise<Broker> {
  const { servers, user, pass, websocket } = readNatsUrl(options.url);
  const pace = new ReconnectPace(Math.random);
  const settings: ConnectionOptions = {
    servers,
    name: options.name,
    timeout: connectTimeoutMs,
    pingInterval: pingIntervalMs,
    maxPingOut: pingsUnansweredMax,
    maxReconnectAttempts: -1,
    reconnectDelayHandler: () => pace.nextMs(),
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
  };
  if (user !== undefined && pass !== undefined) Object.assign(settings, { user, pass });
  else if (user !== undefined) settings.token = user;
  if (options.credentialsFile !== undefined) settings.authenticator = readCredentials(options.credentialsFile);
  let connection: NatsConnection;
  try {
    connection = websocket ? await wsconnect(settings) : await connect(settings);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartFailure(
      exitCodes.unavailable,
      `NATS at ${servers.join(", ")} cannot be used (${reason}): start it there, or set TRUNKLINE_NATS_URL to where it is and TRUNKLINE_NATS_CREDS to a credential it accepts.`,
      { cause: error },
    );
  }
  const payloadBytesMax = connection.info?.max_payload ?? 0;
  if (payloadBytesMax < limits.brokerPayloadBytesMin) {
    await connection.close();
    throw new StartFailure(
      exitCodes.config,
      `NATS at ${servers.join(", ")} carries messages of ${payloadBytesMax} bytes only: set its max_payload to 1MB, or ${limits.brokerPayloadBytesMin} bytes at least.`,
    );
  }
  return new NatsBroker(connection, { ...options, pace });
}

function readCredentials(file: string): ReturnType<typeof credsAuthenticator> {
  try {
    return credsAuthenticator(readFileSync(file));
  } catch (error) {
    throw new StartFailure(
      exitCodes.config,
      `TRUNKLINE_NATS_CREDS: the file ${file} cannot be read; name a .creds file that this user may read.`,
      { cause: error },
    );
  }
}

interface Outgoing {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly options: PublishOptions;
}

/**
 * NATS. All that is published in one turn of the event loop leaves in one write at its end, which is the cheapest
 * thing that either side of the wire does for the other.
 */
class NatsBroker implements Broker {
  connected = true;
  connectedSinceMs: number;
  readonly #connection: NatsConnection;
  readonly #options: NatsOptions & { readonly pace: ReconnectPace };
  readonly #refusalsTold = new Set<string>();
  readonly #listeners = new Set<(connected: boolean) => void>();
  readonly #subscriptions = new Set<NatsSubscription>();
  #refusedPattern: string | undefined;
  #outgoing: Outgoing[] = [];
  #closing = false;

  constructor(connection: NatsConnection, options: NatsOptions & { readonly pace: ReconnectPace }) {
    this.#connection = connection;
    this.#options = options;
    this.connectedSinceMs = options.clock.now();
    void this.#watch();
  }

  get payloadBytesMax(): number {
    return this.#connection.info?.max_payload ?? 1024 * 1024;
  }

  publish(subject: string, data: Uint8Array, options: PublishOptions = {}): PublishOutcome {
    if (data.byteLength > this.payloadBytesMax) throw payloadTooLarge(data.byteLength, this.payloadBytesMax);
    if (!this.connected) return "disconnected";
    if (this.#outgoing.length === 0) atTurnEnd(this);
    this.#outgoing.push({ subject, data, options });
    return "sent";
  }

  subscribe(pattern: string, handler: (message: BrokerMessage) => void): Subscription {
    const subscription = this.#connection.subscribe(pattern, {
      callback: (error, message) => {
        if (error) {
          this.#refusedPattern = pattern;
          this.#tellRefusal(`subscribe to ${pattern}`);
          return;
        }
        try {
          handler(new NatsMessage(message));
        } catch (thrown) {
          this.#options.log.error({ err: thrown, subject: message.subject }, "a broker message could not be handled");
        }
      },
    });
    this.#subscriptions.add(subscription);
    return {
      end: () => {
        this.#subscriptions.delete(subscription);
        subscription.unsubscribe();
      },
    };
  }

  onChange(listener: (connected: boolean) => void): Subscription {
    this.#listeners.add(listener);
    return { end: () => void this.#listeners.delete(listener) };
  }

  async flush(): Promise<void> {
    if (!this.connected) throw new Error("the connection to NATS is down");
    this.#send();
    await this.#connection.flush();
    if (this.#refusedPattern === undefined) return;
    throw new StartFailure(
      exitCodes.config,
      `NATS does not let this credential subscribe to ${this.#refusedPattern}: TRUNKLINE_NATS_URL or TRUNKLINE_NATS_CREDS must hold the one that was made for this process, and an agent's TRUNKLINE_MACHINE must be the machine it was made for.`,
    );
  }

  async close(): Promise<void> {
    this.#closing = true;
    if (this.connected) {
      for (const subscription of this.#subscriptions) subscription.unsubscribe();
      await this.#flushWithin(connectTimeoutMs);
    }
    await this.#connection.close();
    this.#turn(false);
    this.#listeners.clear();
  }

  /** A server that does not answer any more holds no process up. */
  async #flushWithin(limitMs: number): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.clock.after(limitMs, resolve);
    await Promise.race([this.flush().catch(() => undefined), late]);
    timer.cancel();
  }

  /** What was published in this turn leaves. */
  atTurnEnd(): void {
    this.#send();
  }

  #send(): void {
    const batch = this.#outgoing;
    this.#outgoing = [];
    if (!this.connected) return;
    for (const { subject, data, options } of batch) {
      const { reply, headers } = options;
      try {
        if (headers === undefined) this.#connection.publish(subject, data, reply === undefined ? undefined : { reply });
        else this.#connection.publish(subject, data, { reply: reply ?? "", headers: headerLines(headers) });
      } catch (error) {
        this.#options.log.error({ err: error, subject }, "a message could not be handed to NATS");
      }
    }
  }

  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) {
      const { log, pace } = this.#options;
      if (status.type === "disconnect") this.#turn(false);
      else if (status.type === "reconnect") {
        pace.connected();
        this.#turn(true);
      } else if (status.type === "error") this.#report(status.error);
      else if (status.type === "ldm") log.info("this NATS server is about to shut down");
    }
    this.#turn(false);
  }

  #report(error: Error): void {
    const { log, pace } = this.#options;
    if (error instanceof PermissionViolationError) {
      if (error.operation === "publish") this.#tellRefusal(`publish to ${error.subject}`);
    } else if (!(error instanceof AuthorizationError)) log.error({ err: error }, "NATS reports an error");
    else if (pace.refused()) log.error("NATS refuses this credential; it is asked again, ever more rarely");
  }

  #tellRefusal(what: string): void {
    if (this.#refusalsTold.has(what) || this.#refusalsTold.size >= refusalsToldMax) return;
    this.#refusalsTold.add(what);
    this.#options.log.error(`NATS does not let this credential ${what}`);
  }

  #turn(connected: boolean): void {
    if (this.connected === connected) return;
    this.connected = connected;
    this.#outgoing = [];
    if (connected) this.connectedSinceMs = this.#options.clock.now();
    if (!this.#closing) {
      this.#options.log.warn({ connected }, connected ? "connected to NATS again" : "the connection to NATS is lost");
    }
    for (const listener of this.#listeners) listener(connected);
  }
}

class NatsMessage implements BrokerMessage {
  readonly #message: Msg;
  #headers: ReadonlyMap<string, string> | undefined;

  constructor(message: Msg) {
    this.#message = message;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get data(): Uint8Array {
    return this.#message.data;
  }

  get reply(): string | undefined {
    return this.#message.reply === "" ? undefined : this.#message.reply;
  }

  get nobodyThere(): boolean {
    return this.#message.data.byteLength === 0 && this.#message.headers?.code === 503;
  }

  header(name: string): string | undefined {
    this.#headers ??= readNatsHeaders(this.#message);
    return this.#headers.get(name);
  }
}
