import type { Broker } from "#shared/broker/broker.ts";
import type { Clock } from "#shared/process/clock.ts";

/** How this gateway's connection to the broker has fared since it started. */
export class BrokerWatch {
  readonly #clock: Pick<Clock, "now">;
  #lostAtMs: number | undefined;
  #reconnects = 0;

  constructor(broker: Pick<Broker, "connected" | "onChange">, clock: Pick<Clock, "now">) {
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

  /** For how long there has been no connection, if there is none. */
  get awayMs(): number | undefined {
    return this.#lostAtMs === undefined ? undefined : this.#clock.now() - this.#lostAtMs;
  }

  #turn(connected: boolean): void {
    this.#lostAtMs = connected ? undefined : (this.#lostAtMs ?? this.#clock.now());
  }
}
