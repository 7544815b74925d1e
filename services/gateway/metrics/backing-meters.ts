import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { StoreWatch } from "../keys/store-watch.ts";
import type { Exposition } from "./exposition.ts";

/** Longest wait for the broker or the key store when a gateway's readiness or metrics are read. */
export const probeWithinMs = 150;

/**
 * Returns how many milliseconds `ask` took, "failed" if it failed, or "late" if it took longer than `probeWithinMs`.
 */
export async function probe(clock: Clock, ask: () => Promise<unknown>): Promise<number | "failed" | "late"> {
  const askedAtMs = clock.now();
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = clock.after(probeWithinMs, () => resolve("late"));
  const answered = ask().then(
    () => clock.now() - askedAtMs,
    () => "failed" as const,
  );
  return Promise.race([answered, late]).finally(() => timer.cancel());
}

/** Tracks this gateway's connection to the broker since the gateway started. */
export class BrokerWatch {
  readonly #broker: Pick<Broker, "connected" | "trouble">;
  readonly #clock: Pick<Clock, "now">;
  #lostAtMs: number | undefined;

  constructor(broker: Pick<Broker, "connected" | "trouble" | "onChange">, clock: Pick<Clock, "now">) {
    this.#broker = broker;
    this.#clock = clock;
    this.#turn(broker.connected);
    broker.onChange((connected) => this.#turn(connected));
  }

  /** Time since the connection went down; undefined while it is up. */
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

/** Metrics of the broker and the key store, on which a gateway depends. */
export class BackingMeters {
  readonly #dependencies;
  #brokerMs: number | undefined;
  #keysMs: number | undefined;

  constructor(
    exposition: Exposition,
    dependencies: {
      readonly broker: Broker;
      readonly keys: Pick<KeyStore, "ready">;
      readonly store?: Pick<StoreWatch, "founded" | "skewMs"> | undefined;
      readonly clock: Clock;
    },
  ) {
    this.#dependencies = dependencies;
    const { broker, store } = dependencies;
    exposition.gauge(
      { name: "trunkline_broker_connected", help: "1 while the broker (NATS) is connected, else 0." },
      (gauge) => gauge.set(Number(broker.connected)),
    );
    const reconnects = exposition.counter({
      name: "trunkline_broker_reconnects_total",
      help: "Reconnects to the broker.",
    });
    broker.onChange((connected) => {
      if (connected) reconnects.inc();
    });
    exposition.gauge(
      {
        name: "trunkline_broker_round_trip_seconds",
        help: "Round trip to the broker at this scrape; absent after a timeout.",
      },
      (gauge) => {
        if (this.#brokerMs !== undefined) gauge.set(this.#brokerMs / 1_000);
      },
    );
    exposition.gauge(
      { name: "trunkline_key_store_up", help: "1 if the key store (Redis or SQLite) answered at this scrape, else 0." },
      (gauge) => gauge.set(Number(this.#keysMs !== undefined)),
    );
    exposition.gauge(
      {
        name: "trunkline_key_store_round_trip_seconds",
        help: "Round trip to the key store at this scrape; absent after a timeout.",
      },
      (gauge) => {
        if (this.#keysMs !== undefined) gauge.set(this.#keysMs / 1_000);
      },
    );
    exposition.gauge(
      {
        name: "trunkline_key_store_founded",
        help: "1 if the key store holds keys, 0 if it was never used or was emptied.",
      },
      (gauge) => gauge.set(Number(store?.founded === true)),
    );
    exposition.gauge(
      {
        name: "trunkline_clock_skew_seconds",
        help: "Seconds by which this host's clock is ahead of the key store's clock.",
      },
      (gauge) => gauge.set((store?.skewMs ?? 0) / 1_000),
    );
  }

  /** Measures the round trips to the broker and the key store. Call it before the metrics are shown. */
  async look(): Promise<void> {
    const { broker, keys, clock } = this.#dependencies;
    const [brokerMs, keysMs] = await Promise.all([
      probe(clock, () => broker.flush()),
      probe(clock, () => keys.ready()),
    ]);
    this.#brokerMs = typeof brokerMs === "number" ? brokerMs : undefined;
    this.#keysMs = typeof keysMs === "number" ? keysMs : undefined;
  }
}
