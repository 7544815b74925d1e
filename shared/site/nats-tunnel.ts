import { on } from "node:events";
import { type NatsConnection, wsconnect } from "@nats-io/nats-core";
import { WebSocket } from "ws";
import type { Clock } from "../process/clock.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import type { Log } from "../process/log.ts";
import { newToken } from "../protocol/identifiers.ts";
import { connectsPerMinuteMax, refusalIn, signChallenge, type ToldRefusal, tunnelPath } from "../protocol/pairing.ts";
import type { Broker, Subscription } from "../broker/broker.ts";
import { type Site, whyNotReached } from "./reach-site.ts";
import { reconnecting, ReconnectPace } from "../broker/nats-connection.ts";
import { NatsBroker } from "../broker/nats-broker.ts";
import { isCredentialRefused } from "../broker/nats-credentials.ts";

interface Credential {
  /** The id of the site that this machine paired with. A proof for it is good at no other site. */
  readonly site: string;
  readonly publicKey: string;
  /** The private half of the machine's key. */
  readonly seed: string;
}

export interface TunnelOptions extends Site, Credential {
  readonly clock: Clock;
  readonly log: Log;
}

/** The connection of a paired machine to its site's broker, through a gateway. */
export interface Tunnel extends Broker {
  /** The machine's name, as the site told it at the latest connect. */
  readonly machine: string;
  /**
   * Calls the listener when the site tells another name. The connection goes on under the old name for a while, unless
   * `machine` is the new one: then the site told it at a reconnect, and subscriptions to the old name are void.
   */
  onRenamed(listener: (machine: string) => void): Subscription;
  /** Resolves when the site says that this machine's credential will never work again. */
  readonly refused: Promise<StartFailure>;
}

/** Identifies this process, so that the site tells a reconnect from a second process with the same key. */
export const boot = newToken();
/** Timeout of the WebSocket handshake; shorter than that of the whole connect, whose message would say less. */
const handshakeWaitMs = 4_000;
/** Time that a closed socket has for its last bytes. A dead line must not delay the reconnect. */
const closeWaitMs = 1_000;
/** TCP repeats a lost packet after up to 3 s. A reconnect would be slower. */
const pingWaitMs = 4_000;
/**
 * Each attempt to connect may cost the site a TLS handshake, and a site can have hundreds of machines. The attempts of
 * the first two seconds of an outage stay half a second apart at most.
 */
const waitGrowth = 1.1;
/** The largest message of a gateway: one turn of the event loop, with parts of several bodies. */
const frameBytesMax = 64 * 1024 * 1024;

const socketOptions = {
  perMessageDeflate: false,
  handshakeTimeout: handshakeWaitMs,
  closeTimeout: closeWaitMs,
  maxPayload: frameBytesMax,
};

/** Connects once, or fails with a message for a person. From then on the tunnel reconnects by itself for ever. */
export async function connectTunnel(options: TunnelOptions): Promise<Tunnel> {
  const { origin, site, publicKey, seed, agent, clock, log } = options;
  const pace = new ReconnectPace(Math.random, waitGrowth);
  const url = tunnelUrl(origin);
  let failure: unknown;
  try {
    const connection = await wsconnect({
      ...reconnecting(pace),
      servers: url.href,
      ignoreClusterUpdates: true,
      wsFactory: async () => {
        const socket = new WebSocket(url, { ...socketOptions, agent });
        // The client library keeps the message of this error and nothing else.
        socket.once("error", (error) => (failure = error));
        // Before it closes a socket, the library waits until this is 0: on a dead line for minutes. The close itself
        // sends what is left, within `closeWaitMs`.
        Object.defineProperty(socket, "bufferedAmount", { value: 0 });
        return { socket: socket as unknown as globalThis.WebSocket, encrypted: url.protocol === "wss:" };
      },
      authenticator: (challenge = "") => {
        return { nkey: publicKey, sig: signChallenge(seed, { purpose: "connect", site, challenge }), boot };
      },
    });
    return new TunnelBroker(connection, { origin, pace, clock, log });
  } catch (error) {
    throw whyNoTunnel(isCredentialRefused(error) ? error : (failure ?? error), options);
  }
}

class TunnelBroker extends NatsBroker implements Tunnel {
  machine: string;
  readonly #origin: string;
  readonly #renamed = new Set<(machine: string) => void>();
  readonly #refused = Promise.withResolvers<StartFailure>();

  constructor(
    connection: NatsConnection,
    { origin, ...options }: Pick<TunnelOptions, "origin" | "clock" | "log"> & { readonly pace: ReconnectPace },
  ) {
    const name = `the site ${origin}`;
    const credentialRefused = `${name} refuses this machine's credential`;
    const grantRemedy = "the machine may have been renamed; it connects again under its new name.";
    const lineRemedy = "`trunkline doctor` on this machine says why";
    const peer = { name, server: name, credentialRefused, grantRemedy, lineRemedy };
    super(connection, { ...options, pingWaitMs, peer });
    this.#origin = origin;
    this.machine = toldMachine(connection);
  }

  get refused(): Promise<StartFailure> {
    return this.#refused.promise;
  }

  onRenamed(listener: (machine: string) => void): Subscription {
    this.#renamed.add(listener);
    return { end: () => void this.#renamed.delete(listener) };
  }

  protected override reconnected(): void {
    const machine = toldMachine(this.connection);
    if (machine === this.machine) return;
    this.machine = machine;
    for (const listener of this.#renamed) listener(machine);
  }

  /** A gateway asks a machine to connect anew: under another name, or to another gateway, because this one stops. */
  protected override serverLeaves(): void {
    const machine = toldMachine(this.connection);
    if (machine === this.machine) void this.connection.reconnect();
    else for (const listener of this.#renamed) listener(machine);
  }

  protected override credentialRefused(error: Error): boolean {
    const told = refusalIn(error.message);
    const { refusal, retryMs = 0 } = told ?? {};
    if (refusal === "machine_unknown" || refusal === "machine_revoked") {
      this.#refused.resolve(refusedFor(told, this.#origin));
    }
    if (refusal === "too_often") {
      this.options.pace.hold(retryMs);
      this.options.log.warn({ retryMs }, refusedFor(told, this.#origin).message);
    }
    return refusal !== "unavailable" && refusal !== "too_often";
  }
}

/** A gateway as it greets a machine. */
interface Greeting {
  readonly nonce: string;
  /** The machine's name at its site, once its credential was proven. */
  readonly machine?: string;
  /** The gateway's version. */
  readonly trunkline?: string;
  /** The reason for which the machine gets no jobs, if an operator or the site ordered that. */
  readonly cordon?: string;
}

/**
 * Opens a tunnel as far as it takes to know that it would work, and closes it. It takes no machine's place: the gateway
 * proves the credential and opens no broker. Without a credential it reads the greeting only.
 */
export async function checkTunnel(
  way: Site,
  { credential, signal }: { readonly credential?: Credential | undefined; readonly signal: AbortSignal },
): Promise<Greeting> {
  const { origin, agent } = way;
  const socket = new WebSocket(tunnelUrl(origin), { ...socketOptions, agent });
  try {
    for await (const [message] of on(socket, "message", { signal, close: ["close"] })) {
      for (const line of String(message).split("\r\n")) {
        if (line.startsWith("-ERR ")) throw refusedFor(refusalIn(line.slice("-ERR '".length, -1)), origin);
        if (!line.startsWith("INFO ")) continue;
        const greeting = JSON.parse(line.slice("INFO ".length)) as Greeting;
        if (credential === undefined || greeting.machine !== undefined) return greeting;
        const { publicKey: nkey, seed, site } = credential;
        const sig = signChallenge(seed, { purpose: "connect", site, challenge: greeting.nonce });
        socket.send(Buffer.from(`CONNECT ${JSON.stringify({ nkey, sig, boot, check: true })}\r\n`));
      }
    }
    throw new StartFailure(exitCodes.unavailable, `${origin} closed the tunnel without a greeting: try again.`);
  } catch (error) {
    throw error instanceof StartFailure ? error : whyNoTunnel(error, way);
  } finally {
    socket.terminate();
  }
}

function tunnelUrl(origin: string): URL {
  return new URL(tunnelPath, origin.replace(/^http/, "ws"));
}

function toldMachine({ info }: NatsConnection): string {
  const machine: unknown = Reflect.get(info ?? {}, "machine");
  return typeof machine === "string" ? machine : "";
}

function refusedFor(told: ToldRefusal | undefined, origin: string): StartFailure {
  const pairAgain = "Pair it again with a new line of «trunkline machines pair».";
  const forGood = (message: string): StartFailure => new StartFailure(exitCodes.config, `${message} ${pairAgain}`);
  const forNow = (message: string): StartFailure => new StartFailure(exitCodes.unavailable, message);
  switch (told?.refusal) {
    case "machine_unknown":
      return forGood(`The site ${origin} does not know this machine: it was removed or paired again elsewhere.`);
    case "machine_revoked":
      return forGood(`The site ${origin} has revoked this machine: an operator ended its pairing.`);
    case "wrong_proof":
      return forNow(`${origin} does not accept this machine's proof: another site answers there now. ${pairAgain}`);
    case "replaced":
      return forNow(
        `Another process connected to the site ${origin} with this machine's credential: stop one of them.`,
      );
    case "too_often":
      return forNow(
        `The site ${origin} admits ${connectsPerMinuteMax} connects of one machine in a minute (connectsPerMinuteMax), and this one again in ${Math.ceil((told?.retryMs ?? 0) / 1_000)} s. A proxy on the way may cut WebSockets.`,
      );
    case "unavailable":
    case undefined:
      return forNow(`The site ${origin} cannot serve this machine just now: try again.`);
  }
}

/** Explains to a person why the connect failed. */
function whyNoTunnel(error: unknown, way: Site): StartFailure {
  const { origin } = way;
  if (error instanceof Error && isCredentialRefused(error)) return refusedFor(refusalIn(error.message), origin);
  const reason = error instanceof Error ? error.message : String(error);
  const unavailable = (message: string): StartFailure =>
    new StartFailure(exitCodes.unavailable, message, { cause: error });
  const status = /^Unexpected server response: (\d+)$/.exec(reason)?.[1];
  if (status === "502" || status === "503" || status === "504") {
    return unavailable(`The site ${origin} does not serve machines just now (HTTP ${status}): try again.`);
  }
  if (status !== undefined) {
    return unavailable(
      `${origin} does not answer as a Trunkline site (HTTP ${status} at ${tunnelPath}): check the URL, and let proxies in front pass WebSockets on.`,
    );
  }
  return unavailable(whyNotReached(error, way).message);
}
