import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { StoreWatch } from "../access/store-watch.ts";
import type { BrokerWatch } from "./broker-watch.ts";
import type { Exposition } from "./exposition.ts";
import { probe } from "./probe.ts";

/** Metrics of the broker and the key store, on which a gateway depends. */
export class BackingMeters {
  readonly #means;
  #brokerMs: number | undefined;
  #keysMs: number | undefined;

  constructor(
    exposition: Exposition,
    means: {
      readonly broker: Broker;
      readonly brokerWatch: BrokerWatch;
      readonly keys: Pick<KeyStore, "ready">;
      readonly store?: Pick<StoreWatch, "founded" | "skewMs"> | undefined;
      readonly clock: Clock;
    },
  ) {
    this.#means = means;
    const { broker, brokerWatch, store } = means;
    exposition.gauge(
      { name: "trunkline_broker_connected", help: "1 while the broker (NATS) is connected, else 0." },
      (gauge) => gauge.set(Number(broker.connected)),
    );
    exposition.readCounter(
      { name: "trunkline_broker_reconnects_total", help: "Times that the connection to the broker came back." },
      () => brokerWatch.reconnects,
    );
    exposition.gauge(
      {
        name: "trunkline_broker_round_trip_seconds",
        help: "How long the broker took to answer at this scrape; absent if it did not in time.",
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
        help: "How long the key store took to answer at this scrape; absent if it did not in time.",
      },
      (gauge) => {
        if (this.#keysMs !== undefined) gauge.set(this.#keysMs / 1_000);
      },
    );
    exposition.gauge(
      {
        name: "trunkline_key_store_founded",
        help: "1 if the key store holds keys, 0 if it was never used or was emptied, by its last answer.",
      },
      (gauge) => gauge.set(Number(store?.founded === true)),
    );
    exposition.gauge(
      {
        name: "trunkline_clock_skew_seconds",
        help: "How far the clock of this host is ahead of that of the key store, by which keys expire.",
      },
      (gauge) => gauge.set((store?.skewMs ?? 0) / 1_000),
    );
  }

  /** Measures the round trips to the broker and the key store. Call it before the metrics are shown. */
  async look(): Promise<void> {
    const { broker, keys, clock } = this.#means;
    const [brokerMs, keysMs] = await Promise.all([
      probe(clock, () => broker.flush()),
      probe(clock, () => keys.ready()),
    ]);
    this.#brokerMs = typeof brokerMs === "number" ? brokerMs : undefined;
    this.#keysMs = typeof keysMs === "number" ? keysMs : undefined;
  }
}
