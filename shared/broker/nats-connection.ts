import type { ConnectionOptions } from "@nats-io/nats-core";
import type { Clock, Timer } from "../process/clock.ts";

/** Timeout of a connect. TCP, TLS, INFO and the first PONG take four to five round trips; each may last 1 s. */
export const connectTimeoutMs = 5_000;
/** Pings of the client library. They ignore the round trip, and are only a fallback for `LineWatch`. */
const clientPings = { pingInterval: 10_000, maxPingOut: 2 };

/** Settings of a connection that reconnects for ever. */
export function reconnecting(pace: ReconnectPace): ConnectionOptions {
  return {
    timeout: connectTimeoutMs,
    ...clientPings,
    maxReconnectAttempts: -1,
    reconnectDelayHandler: () => pace.nextMs(),
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
  };
}

/** Delay between attempts to reach a lost server. Two sides of a restart reconnect within this time of each other. */
const waitMs = 100;
const jitter = 1.5;
/** Upper bound of a delay that grows, before its jitter. */
const waitMsMax = 1_000;
/** Bounds of the backoff after a refused credential: the server will likely refuse it again. */
const refusedWaitMsMin = 500;
const refusedWaitMsMax = 30_000;

/** The usual time of a handshake on a thin line. */
const handshakeMs = 500;

/** Computes the delay before the next attempt to connect. Jitter keeps a fleet from reconnecting all at once. */
export class ReconnectPace {
  readonly #random: () => number;
  readonly #growth: number;
  #refusals = 0;
  #attempts = 0;
  #heldMs = 0;

  /** `growth` is the factor from each delay to the next, until a connect succeeds. */
  constructor(random: () => number, growth = 1) {
    this.#random = random;
    this.#growth = growth;
  }

  /** Counts a refused credential. Returns true for the first refusal since the last successful connect. */
  refused(): boolean {
    this.#refusals += 1;
    return this.#refusals === 1;
  }

  connected(): void {
    this.#refusals = 0;
    this.#attempts = 0;
    this.#heldMs = 0;
  }

  /**
   * Waits this long at least before each attempt, until one succeeds: the other side told the time. The client counts a
   * delay from the start of the refused attempt, so the time of its handshake is added.
   */
  hold(ms: number): void {
    this.#heldMs = Math.min(ms + handshakeMs, refusedWaitMsMax);
  }

  nextMs(): number {
    return Math.max(this.#ownMs(), this.#heldMs);
  }

  #ownMs(): number {
    if (this.#refusals === 0) {
      const unjittered = Math.min(waitMs * this.#growth ** this.#attempts, waitMsMax);
      this.#attempts += 1;
      return unjittered * (1 + this.#random() * jitter);
    }
    const grown = refusedWaitMsMin * 2 ** Math.min(this.#refusals - 1, 10);
    return Math.min(grown, refusedWaitMsMax) * (0.5 + this.#random() / 2);
  }
}

/** How often a ping is sent, and how often a late answer is looked for. */
const pingIntervalMs = 1_000;
const pingLookMs = 250;
/**
 * A ping times out this long after three round trips. The first ping of a connection has longer: its round trip is
 * unknown.
 */
const pingWaitMsDefault = 1_000;
const firstPingWaitMs = connectTimeoutMs;
const roundTripsAwaited = 3;
/** `roundTripMs` is the median of this many round trips, so that one pause of a busy host does not count. */
const roundTripsKept = 5;

interface LineOptions {
  readonly clock: Clock;
  readonly pingWaitMs?: number | undefined;
  /** Resolves when the server answers. */
  readonly ping: () => Promise<void>;
  readonly onSilent: (waitedMs: number) => void;
}

/** Detects a dead connection or a frozen server. The timeout of a ping follows the measured round trips. */
export class LineWatch {
  roundTripMs = 0;
  #roundTripsMs: readonly number[] = [];
  readonly #options: LineOptions;
  readonly #pingWaitMs: number;
  readonly #timer: Timer;
  #connected = true;
  #lookedAtMs: number;
  /** The ping without an answer yet. */
  #ping: { sentAtMs: number; readonly waitMs: number } | undefined;
  #pingedAtMs = -Infinity;
  #isFirstPing = true;

  constructor(options: LineOptions) {
    const { clock, pingWaitMs = pingWaitMsDefault } = options;
    this.#options = options;
    this.#pingWaitMs = pingWaitMs;
    this.#lookedAtMs = clock.now();
    this.#timer = clock.every(pingLookMs, () => this.#look());
    this.#look();
  }

  /** Forgets the ping under way: the connection was lost, or is a new one. */
  turn(connected: boolean): void {
    this.#connected = connected;
    this.#ping = undefined;
    this.#isFirstPing = true;
    this.#pingedAtMs = -Infinity;
  }

  stop(): void {
    this.#timer.cancel();
  }

  #look(): void {
    const nowMs = this.#options.clock.now();
    const stoodStill = nowMs - this.#lookedAtMs > pingLookMs + this.#pingWaitMs;
    this.#lookedAtMs = nowMs;
    if (!this.#connected) return;
    const ping = this.#ping;
    if (ping === undefined) {
      if (nowMs - this.#pingedAtMs >= pingIntervalMs) this.#sendPing(nowMs);
      return;
    }
    // This process was paused, so the answer may lie unread in the socket: restart the timeout.
    if (stoodStill) ping.sentAtMs = nowMs;
    if (nowMs - ping.sentAtMs <= ping.waitMs) return;
    this.#ping = undefined;
    this.#options.onSilent(Math.round(nowMs - ping.sentAtMs));
  }

  #sendPing(sentAtMs: number): void {
    const longestMs = Math.max(...this.#roundTripsMs);
    const answerWaitMs = this.#isFirstPing ? firstPingWaitMs : this.#pingWaitMs + roundTripsAwaited * longestMs;
    const ping = { sentAtMs, waitMs: answerWaitMs };
    this.#ping = ping;
    this.#pingedAtMs = sentAtMs;
    const answered = (): void => {
      if (this.#ping !== ping) return;
      this.#ping = undefined;
      this.#isFirstPing = false;
      const tookMs = this.#options.clock.now() - ping.sentAtMs;
      this.#roundTripsMs = [tookMs, ...this.#roundTripsMs.slice(0, roundTripsKept - 1)];
      const sorted = this.#roundTripsMs.toSorted((one, other) => one - other);
      this.roundTripMs = Math.round(sorted[Math.floor(sorted.length / 2)] ?? tookMs);
    };
    this.#options.ping().then(answered, () => undefined);
  }
}
