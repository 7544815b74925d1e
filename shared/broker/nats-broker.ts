import {
  headers as emptyHeaders,
  PermissionViolationError,
  wsconnect,
  type ConnectionOptions,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type Subscription as NatsSubscription,
} from "@nats-io/nats-core";
import { type Clock, within } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import { limits } from "../protocol/limits.ts";
import { grantFor } from "../protocol/subjects.ts";
import {
  type Broker,
  type BrokerMessage,
  type PublishOptions,
  type PublishOutcome,
  type Subscription,
  payloadTooLarge,
  subjectMatches,
} from "./broker.ts";
import {
  protectNats,
  readNatsUrl,
  tlsFailure,
  webSocketFactory,
  type NatsProtection,
  type NatsSecurity,
} from "./nats-security.ts";
import { connectTimeoutMs, LineWatch, reconnecting, ReconnectPace } from "./nats-connection.ts";
import { connectTcp } from "./nats-transport.ts";
import { isCredentialRefused, type NatsCredential, readCredentials, signedNonce } from "./nats-credentials.ts";

interface NatsOptions {
  /**
   * One URL or several separated by commas: `nats://`, `tls://`, `ws://` or `wss://`, optionally with `user:password@`.
   */
  readonly url: string;
  readonly credentialsFile?: string | undefined;
  /** Returns a credential that this process made or was given; called at each connect. */
  readonly credential?: (() => NatsCredential) | undefined;
  readonly security?: NatsSecurity | undefined;
  /** The connection name that the server's operators see. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
}

const closeWaitMs = 2_000;
/** Bounds the remembered denials. A site has only a handful of different ones. */
const denialsMax = 100;
/** A denied publish that does not recur within this time counts as allowed: grants can change while a broker runs. */
const denialStandsMs = 5_000;

/**
 * Connects once, or fails with a message for the operator. From then on the connection reconnects by itself for ever.
 */
export async function connectNats(options: NatsOptions): Promise<NatsBroker> {
  const url = readNatsUrl(options.url);
  const { servers, user, pass, websocket } = url;
  const { security = {}, credentialsFile, credential } = options;
  const protection = protectNats(url, { ...security, hasCredential: (credentialsFile ?? credential) !== undefined });
  if (security.insecure === true && !url.onLoopback) {
    options.log.warn({ hosts: url.hosts }, "TRUNKLINE_NATS_INSECURE: passwords and prompts may cross in clear text");
  }
  const pace = new ReconnectPace(Math.random);
  const server = `NATS at ${servers.join(", ")}`;
  const peer = { server, ...(credential === undefined ? natsPeer : peerFor(credential())) };
  const settings: ConnectionOptions = {
    ...reconnecting(pace),
    servers,
    name: options.name,
    // A server may announce other servers. In clear text only the servers of the URL are trusted.
    ignoreClusterUpdates: protection.tls === undefined && security.insecure !== true,
  };
  if (protection.tls !== undefined && !websocket) settings.tls = protection.tls;
  if (user !== undefined && pass !== undefined) Object.assign(settings, { user, pass });
  else if (user !== undefined) settings.token = user;
  if (credentialsFile !== undefined) settings.authenticator = readCredentials(credentialsFile);
  if (credential !== undefined) settings.authenticator = (nonce) => signedNonce(credential(), nonce);
  let connection: NatsConnection;
  try {
    const wsFactory = webSocketFactory(security);
    connection = websocket
      ? await wsconnect({ ...settings, ...(wsFactory && { wsFactory }) })
      : await connectTcp(servers, settings);
  } catch (error) {
    const withoutTls = tlsFailure(error, url);
    if (withoutTls !== undefined) throw new StartFailure(exitCodes.unavailable, withoutTls, { cause: error });
    throw whyNotConnected(error, peer, credential);
  }
  const open = protection.openTo(connection.info);
  if (open !== undefined) {
    await connection.close();
    throw new StartFailure(exitCodes.unavailable, open);
  }
  const payloadBytesMax = connection.info?.max_payload ?? 0;
  if (payloadBytesMax < limits.brokerPayloadBytesMin) {
    await connection.close();
    throw new StartFailure(
      exitCodes.config,
      `${server} carries messages of ${payloadBytesMax} bytes only: set its max_payload to 1MB, or ${limits.brokerPayloadBytesMin} bytes at least.`,
    );
  }
  return new NatsBroker(connection, { ...options, peer, pace, openTo: (info) => protection.openTo(info) });
}

/** The other end of a connection in messages for people. */
export interface NatsPeer {
  readonly name: string;
  readonly server: string;
  readonly credentialRefused: string;
  readonly grantRemedy: string;
  /** The remedy for a line that is down or silent. */
  readonly lineRemedy: string;
}

const lineRemedy = "start it there, or set TRUNKLINE_NATS_URL to where it is";

const natsPeer: Omit<NatsPeer, "server"> = {
  name: "NATS",
  lineRemedy,
  credentialRefused: "NATS refuses this credential (TRUNKLINE_NATS_URL, TRUNKLINE_NATS_CREDS)",
  grantRemedy:
    "TRUNKLINE_NATS_URL or TRUNKLINE_NATS_CREDS must hold the one that was made for this process, and an agent's TRUNKLINE_MACHINE must be the machine it was made for.",
};

function peerFor({ remedy }: NatsCredential): Omit<NatsPeer, "server"> {
  return { name: "NATS", lineRemedy, credentialRefused: `NATS refuses a credential: ${remedy}`, grantRemedy: remedy };
}

/** Explains why the connect failed. A refused credential and an unreachable server need different remedies. */
function whyNotConnected(error: unknown, peer: NatsPeer, credential: (() => NatsCredential) | undefined): StartFailure {
  // Both cases share one exit code that lets a supervisor retry: a credential may be added to a running server.
  if (!isCredentialRefused(error)) return new NatsUnreachable(peer, error);
  const remedy =
    credential?.().remedy ??
    "put a user and password that it knows into TRUNKLINE_NATS_URL, or name a .creds file that it accepts in TRUNKLINE_NATS_CREDS";
  const refusal = `${peer.server} refuses the credential of this process (${reasonIn(error)}): ${remedy}.`;
  return new StartFailure(exitCodes.unavailable, refusal, { cause: error });
}

/** The other end of a connection is down or silent. */
export class NatsUnreachable extends StartFailure {
  constructor({ server, lineRemedy: remedy }: NatsPeer, error: unknown) {
    super(exitCodes.unavailable, `${server} cannot be reached (${reasonIn(error)}): ${remedy}.`, { cause: error });
  }
}

/** Returns the reason of an error of the client library, of which several have no text. */
function reasonIn(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  if (text === "timeout") {
    return `no answer within ${connectTimeoutMs} ms (connectTimeoutMs): it hangs, a firewall holds the line, or something else listens there`;
  }
  return text === "" || text.includes("undefined error") ? "the connection was lost or not made" : text;
}

interface NatsBrokerOptions {
  readonly peer: NatsPeer;
  readonly pace: ReconnectPace;
  /** A ping times out this long after three round trips. */
  readonly pingWaitMs?: number;
  /** Describes a server that admits unauthenticated clients. */
  readonly openTo?: NatsProtection["openTo"];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The NATS broker. It sends all messages that are published in one turn of the event loop in one write at the end of
 * the turn. That is the cheapest way for both sides of the wire.
 */
export class NatsBroker implements Broker {
  connected = true;
  connectedSinceMs: number;
  protected readonly connection: NatsConnection;
  protected readonly options: NatsBrokerOptions;
  /** Denied publishes and subscriptions, each with the time until which the denial stands. */
  readonly #denials = new Map<string, number>();
  readonly #dispensable = new Set<{ readonly pattern: string; readonly listener: (reason: string) => void }>();
  readonly #listeners = new Set<(connected: boolean) => void>();
  readonly #subscriptions = new Set<NatsSubscription>();
  #refusedPattern: string | undefined;
  /** True if NATS refused the credential at the latest completed attempt to connect. */
  #refusesCredential = false;
  #refusedThisAttempt = false;
  #outgoing: { readonly subject: string; readonly data: Uint8Array; readonly options: PublishOptions }[] = [];
  #closing = false;
  readonly #line: LineWatch;

  constructor(connection: NatsConnection, options: NatsBrokerOptions) {
    this.connection = connection;
    this.options = options;
    this.connectedSinceMs = options.clock.now();
    void this.#watch();
    const { clock, log, peer, pingWaitMs } = options;
    this.#line = new LineWatch({
      clock,
      pingWaitMs,
      ping: () => connection.flush(),
      onSilent: (waitedMs) => {
        log.warn({ waitedMs }, `${peer.name} does not answer a ping`);
        void connection.reconnect().catch(() => undefined);
      },
    });
  }

  get roundTripMs(): number {
    return this.#line.roundTripMs;
  }

  get trouble(): string | undefined {
    const { name, credentialRefused } = this.options.peer;
    if (!this.connected) return this.#refusesCredential ? credentialRefused : `${name} cannot be reached`;
    const [denied] = this.#denials.keys().filter((each) => this.#stands(each));
    return denied === undefined ? undefined : `${name} does not let its credential ${denied}`;
  }

  get connectionId(): string | undefined {
    const { info } = this.connection;
    return info === undefined ? undefined : `${info.server_id}.${info.client_id}`;
  }

  get serverVersion(): string {
    return this.connection.info?.version ?? "";
  }

  get payloadBytesMax(): number {
    return this.connection.info?.max_payload ?? 1024 * 1024;
  }

  publish(subject: string, data: Uint8Array, options: PublishOptions = {}): PublishOutcome {
    if (data.byteLength > this.payloadBytesMax) throw payloadTooLarge(data.byteLength, this.payloadBytesMax);
    if (!this.connected) return "disconnected";
    if (this.#outgoing.length === 0) setImmediate(() => this.#send());
    this.#outgoing.push({ subject, data, options });
    return "sent";
  }

  subscribe(pattern: string, handler: (message: BrokerMessage) => void): Subscription {
    const subscription = this.connection.subscribe(pattern, {
      callback: (error, message) => {
        if (error) {
          const denied = `subscribe to ${grantFor(pattern)}`;
          if (this.#isDispensable(pattern, denied)) return;
          this.#refusedPattern = pattern;
          // The client library drops the subscription, so the denial stands until this process ends.
          this.#deny(denied, Infinity);
          return;
        }
        // Drops messages until the server has this subscription again. Until then only bytes from before the TLS
        // handshake can claim to be for it.
        if (!this.connected) return;
        try {
          handler(new NatsMessage(message));
        } catch (thrown) {
          this.options.log.error({ err: thrown, subject: message.subject }, "a broker message could not be handled");
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

  onDenied(pattern: string, listener: (reason: string) => void): Subscription {
    const dispensable = { pattern, listener };
    this.#dispensable.add(dispensable);
    return { end: () => void this.#dispensable.delete(dispensable) };
  }

  onChange(listener: (connected: boolean) => void): Subscription {
    this.#listeners.add(listener);
    return { end: () => void this.#listeners.delete(listener) };
  }

  async flush(): Promise<void> {
    const { name, grantRemedy } = this.options.peer;
    if (!this.connected) throw new NatsUnreachable(this.options.peer, new Error("the connection is down"));
    this.#send();
    await this.connection.flush().catch((error: unknown) => {
      throw new NatsUnreachable(this.options.peer, error);
    });
    // The client library reports a denied publish a few microtasks after the answer to the flush.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#refusedPattern === undefined) return;
    throw new StartFailure(
      exitCodes.config,
      `${name} does not let this credential subscribe to ${grantFor(this.#refusedPattern)}: ${grantRemedy}`,
    );
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#line.stop();
    if (this.connected) {
      for (const subscription of this.#subscriptions) subscription.unsubscribe();
      // A server that no longer answers must not delay the shutdown.
      const late = (): Error => new Error("the server does not answer");
      await within(this.options.clock, closeWaitMs, late, () => this.flush()).catch(() => undefined);
    }
    await this.connection.close();
    this.#turn(false);
    this.#listeners.clear();
  }

  /** Sends the messages that were published in this turn of the event loop. */
  #send(): void {
    const batch = this.#outgoing;
    this.#outgoing = [];
    if (!this.connected) return;
    for (const { subject, data, options } of batch) {
      const { reply, headers } = options;
      try {
        if (headers === undefined) this.connection.publish(subject, data, reply === undefined ? undefined : { reply });
        else this.connection.publish(subject, data, { reply: reply ?? "", headers: natsHeaders(headers) });
      } catch (error) {
        this.options.log.error({ err: error, subject }, "a message could not be handed to the broker");
      }
    }
  }

  /** Called after each reconnect, before anything is published. */
  protected reconnected(): void {
    const open = this.options.openTo?.(this.connection.info);
    if (open !== undefined) this.options.log.error(open);
  }

  /** Called when the server is about to shut down. */
  protected serverLeaves(): void {
    this.options.log.info("this NATS server is about to shut down");
  }

  /** Called when the server refuses the credential. Returns false if the refusal says nothing about the credential. */
  protected credentialRefused(_error: Error): boolean {
    return true;
  }

  async #watch(): Promise<void> {
    for await (const status of this.connection.status()) {
      const { pace } = this.options;
      if (status.type === "disconnect") this.#turn(false);
      else if (status.type === "reconnecting") {
        this.#refusesCredential = this.#refusedThisAttempt;
        this.#refusedThisAttempt = false;
      } else if (status.type === "reconnect") {
        pace.connected();
        this.#refusesCredential = this.#refusedThisAttempt = false;
        this.reconnected();
        this.#turn(true);
      } else if (status.type === "error") this.#report(status.error);
      else if (status.type === "ldm") this.serverLeaves();
    }
    this.#turn(false);
  }

  #report(error: Error): void {
    const { peer, log, pace } = this.options;
    if (error instanceof PermissionViolationError) {
      const denied = `publish to ${grantFor(error.subject)}`;
      if (error.operation !== "publish" || this.#isDispensable(error.subject, denied)) return;
      this.#deny(denied, denialStandsMs);
    } else if (isCredentialRefused(error)) {
      if (!this.credentialRefused(error)) return;
      this.#refusesCredential = this.#refusedThisAttempt = true;
      if (pace.refused()) log.error(`${peer.credentialRefused}; it is asked again, ever more rarely`);
    } else log.error({ err: error }, `${peer.name} reports an error`);
  }

  /** Tells a denial to those who can do without the subject. Returns false when there are none. */
  #isDispensable(subject: string, denied: string): boolean {
    const told = [...this.#dispensable].filter(({ pattern }) => subjectMatches(pattern, subject));
    for (const { listener } of told) listener(`${this.options.peer.name} does not let its credential ${denied}`);
    return told.length > 0;
  }

  #stands(denied: string): boolean {
    return (this.#denials.get(denied) ?? 0) > this.options.clock.now();
  }

  #deny(what: string, standsMs: number): void {
    const { peer, log, clock } = this.options;
    if (!this.#denials.has(what) && this.#denials.size >= denialsMax) return;
    if (!this.#stands(what)) log.error(`${peer.name} does not let this credential ${what}`);
    this.#denials.set(what, clock.now() + standsMs);
  }

  #turn(connected: boolean): void {
    if (this.connected === connected) return;
    this.connected = connected;
    this.#outgoing = [];
    this.#line.turn(connected);
    if (connected) this.connectedSinceMs = this.options.clock.now();
    if (!this.#closing) {
      const { peer, log } = this.options;
      log.warn({ connected }, connected ? `connected to ${peer.name} again` : `the connection to ${peer.name} is lost`);
    }
    for (const listener of this.#listeners) listener(connected);
  }
}

function natsHeaders(headers: Readonly<Record<string, string>>): MsgHdrs {
  const lines = emptyHeaders();
  for (const [name, value] of Object.entries(headers)) lines.set(name, value);
  return lines;
}

/** Reads the headers of a message when they are asked for: most handlers read none, and a machine can send any. */
class NatsMessage implements BrokerMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly noResponders: boolean;
  readonly #message: Msg;

  constructor(message: Msg) {
    this.subject = message.subject;
    this.data = message.data;
    this.noResponders = this.data.byteLength === 0 && message.headers?.code === 503;
    this.#message = message;
  }

  get reply(): string | undefined {
    return this.#message.reply === "" ? undefined : this.#message.reply;
  }

  get headers(): Readonly<Record<string, string>> | undefined {
    const { headers } = this.#message;
    return headers && Object.fromEntries(headers.keys().map((name) => [name, headers.get(name)]));
  }
}
