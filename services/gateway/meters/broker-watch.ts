import type { Broker } from "#shared/broker/broker.ts";
import type { Clock } from "#shared/process/clock.ts";

/** Tracks this gateway's connection to the broker since the gateway started. */
export class BrokerWatch {
  readonly #broker: Pick<Broker, "connected" | "trouble">;
  readonly #clock: Pick<Clock, "now">;
  #lostAtMs: number | undefined;
  #reconnects = 0;

  constructor(broker: Pick<Broker, "connected" | "trouble" | "onChange">, clock: Pick<Clock, "now">) {
    this.#broker = broker;
    this.#clock = clock;
    this.#turn(broker.connected);
    broker.onChange((connected) => {
      if (connected) this.#reconnects += 1;
      this.#turn(connected);
    });
  }

  get reconnects(): number {
    return this.#reconnects;
  }

  /** How long the connection has been down; undefined while it is up. */
  get awayMs(): number | undefined {
    return this.#lostAtMs === undefined ? undefined : this.#clock.now() - this.#lostAtMs;
  }

  /** Tells people for how long and why the broker is away, or what the broker denies to this gateway. */
  get trouble(): string | undefined {
    const { awayMs } = this;
    const { trouble } = this.#broker;
    return awayMs === undefined ? trouble : `the broker is away for ${Math.round(awayMs / 1_000)} s: ${trouble}`;
  }

  #turn(connected: boolean): void {
    this.#lostAtMs = connected ? undefined : (this.#lostAtMs ?? this.#clock.now());
  }
}
