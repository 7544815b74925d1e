import type { Broker } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import { type Clock, sleep } from "#shared/process/clock.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Roster } from "../fleet/roster.ts";

interface BrokerLineOptions {
  readonly broker: Broker;
  readonly roster: Roster;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** The line of this gateway to the broker: whether it holds, and since when. Its gaps are no silence of machines. */
export class BrokerLine {
  readonly #options: BrokerLineOptions;
  /** Until then this process has not stood still, as far as its ticks tell. */
  awakeUntilMs = Infinity;
  #sinceMs: number;
  /** The time at which the connection was last lost or came back. */
  #turnedAtMs = -Infinity;
  #pinging: Promise<boolean> | undefined;
  /** The time of the last cut, reconnect or pause of this gateway. Undefined if none of these happened. */
  #backSinceMs: number | undefined;

  constructor(options: BrokerLineOptions) {
    this.#options = options;
    this.#sinceMs = options.clock.now();
    this.ticked(this.#sinceMs);
  }

  /** Whether the gateway is connected, and since when it could hear its machines. */
  get state(): { readonly connected: boolean; readonly sinceMs: number } {
    return { connected: this.#options.broker.connected, sinceMs: this.#sinceMs };
  }

  /** True if this gateway was cut off or stood still a moment ago. Machines may then have dropped its jobs. */
  get wasAway(): boolean {
    const { clock, timing } = this.#options;
    return this.#backSinceMs !== undefined && clock.now() - this.#backSinceMs < timing.offlineAfterMs;
  }

  /**
   * True if the broker answers, and its connection was neither lost nor came back since a time, or a moment ago. The
   * silence of a machine may otherwise be the broker's. Concurrent callers share one ping.
   */
  async answeredSince(sinceMs: number): Promise<boolean> {
    const { clock, timing } = this.#options;
    if (this.#turnedAtMs > Math.min(sinceMs, clock.now() - timing.offlineAfterMs)) return false;
    this.#pinging ??= this.#ping().finally(() => (this.#pinging = undefined));
    return this.#pinging;
  }

  async #ping(): Promise<boolean> {
    const { broker, clock, timing } = this.#options;
    const answered = broker.flush().then(
      () => true,
      () => broker.connected,
    );
    return Promise.race([answered, sleep(clock, timing.acceptWaitMs + 3 * broker.roundTripMs).then(() => false)]);
  }

  /** Called when the connection was lost or came back. */
  turned(nowMs: number): void {
    this.#sinceMs = this.#backSinceMs = this.#turnedAtMs = nowMs;
  }

  ticked(nowMs: number): void {
    if (nowMs > this.awakeUntilMs) this.paused(nowMs);
    this.awakeUntilMs = nowMs + this.#options.timing.probeAfterMs;
  }

  /**
   * Called when this process stood still: no tick came for `probeAfterMs`. Messages that arrived meanwhile are still unread,
   * so the silence of machines does not count. A frame, a request or a timer may come first after a pause, so each of
   * them looks at `awakeUntilMs`.
   */
  paused(nowMs: number): void {
    this.awakeUntilMs = nowMs + this.#options.timing.probeAfterMs;
    this.#sinceMs = this.#backSinceMs = nowMs;
    this.#options.roster.reconnected(nowMs);
  }
}

/** The fault of a request while this gateway's connection to the broker is down, or was a moment ago. */
export function cutOff(internal?: string): Fault {
  const message = "The gateway has no connection to the broker at the moment.";
  return new Fault("backend_unavailable", { message, internal });
}
