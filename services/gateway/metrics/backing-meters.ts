import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import { type Clock, within } from "#shared/process/clock.ts";
import type { StoreWatch } from "../keys/store-watch.ts";
import type { Exposition } from "./exposition.ts";

/** Longest wait for the broker or the key store when a gateway's readiness or metrics are read. */
export const probeWithinMs = 150;

/**
 * Returns how many milliseconds `ask` took, "failed" if it failed, or "late" if it took longer than `probeWithinMs`.
 */
export async function probe(clock: Clock, ask: () => Promise<unknown>): Promise<number | "failed" | "late"> {
  const askedAtMs = clock.now();
  const late = new Error("late");
  return within(clock, probeWithinMs, () => late, ask).then(
    () => clock.now() - askedAtMs,
    (error: unknown) => (error === late ? "late" : "failed"),
  );
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

/**
 * Adds the metrics of the broker and the key store, on which a gateway depends. The returned function measures the round
 * trips to both; call it before the metrics are shown.
 */
export function measureBacking(
  exposition: Exposition,
  dependencies: {
    readonly broker: Broker;
    readonly keys: Pick<KeyStore, "ready">;
    readonly store?: Pick<StoreWatch, "founded" | "skewMs"> | undefined;
    readonly clock: Clock;
  },
): () => Promise<void> {
  const { broker, keys, store, clock } = dependencies;
  let brokerSeconds: number | undefined;
  let keysSeconds: number | undefined;
  exposition.value("brokerConnected", "1 while the broker (NATS) is connected, else 0.", () =>
    Number(broker.connected),
  );
  const { brokerReconnects } = exposition.counters([], { brokerReconnects: "Reconnects to the broker." });
  broker.onChange((connected) => {
    if (connected) brokerReconnects.inc();
  });
  exposition.value(
    "brokerRoundTripSeconds",
    "Round trip to the broker at this scrape; absent after a timeout.",
    () => brokerSeconds,
  );
  exposition.value("keyStoreUp", "1 if the key store (Redis or SQLite) answered at this scrape, else 0.", () =>
    Number(keysSeconds !== undefined),
  );
  exposition.value(
    "keyStoreRoundTripSeconds",
    "Round trip to the key store at this scrape; absent after a timeout.",
    () => keysSeconds,
  );
  exposition.value("keyStoreFounded", "1 if the key store holds keys, 0 if it was never used or was emptied.", () =>
    Number(store?.founded === true),
  );
  exposition.value(
    "clockSkewSeconds",
    "Seconds by which this host's clock is ahead of the key store's clock.",
    () => (store?.skewMs ?? 0) / 1_000,
  );
  const secondsOf = async (ask: () => Promise<unknown>): Promise<number | undefined> => {
    const ms = await probe(clock, ask);
    return typeof ms === "number" ? ms / 1_000 : undefined;
  };
  return async () => {
    [brokerSeconds, keysSeconds] = await Promise.all([secondsOf(() => broker.flush()), secondsOf(() => keys.ready())]);
  };
}
