import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { StoreWatch } from "../access/store-watch.ts";
import type { KnownKeys } from "../access/known-keys.ts";
import { probe, probeWithinMs, type BrokerWatch } from "../meters/backing-meters.ts";

export interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<"serving" | "broker" | "keys", boolean>>;
  /** The reasons why the gateway is not ready, and problems that do not stop it from serving. */
  readonly reasons: readonly string[];
}

/**
 * Checks whether this gateway can serve requests: it is not shutting down, the broker is connected, and the key store
 * answers. A key store that is away only for a short time, while known keys still work, does not fail the check: all
 * gateways may lose their store at once, and none should be taken out for that. An emptied store fails the check: the
 * gateway refuses every key that it has not seen.
 * The answer comes in time even when a check hangs, since a balancer that waits for the answer does not turn away.
 */
export async function readiness(parts: {
  readonly broker: Pick<Broker, "connected">;
  readonly brokerWatch: Pick<BrokerWatch, "trouble">;
  readonly keys: Pick<KeyStore, "ready">;
  readonly knownKeys: Pick<KnownKeys, "goOn">;
  readonly store?: Pick<StoreWatch, "emptied" | "faults"> | undefined;
  readonly clock: Clock;
  readonly draining: () => boolean;
}): Promise<Readiness> {
  const { keys, knownKeys, store, clock } = parts;
  const answered = await probe(clock, () => keys.ready());
  const checks = {
    serving: !parts.draining(),
    broker: parts.broker.connected,
    keys: (typeof answered === "number" || knownKeys.goOn) && store?.emptied !== true,
  };
  const why: Readonly<Record<keyof typeof checks, string>> = {
    serving: "this gateway shuts down",
    broker: parts.brokerWatch.trouble ?? "the broker is away",
    keys: `the key store ${answered === "late" ? `does not answer within ${probeWithinMs} ms` : "cannot be asked"}, and known keys do not go on without it (TRUNKLINE_KEYS_AWAY_MS)`,
  };
  const failed = (["serving", "broker", "keys"] as const).filter((check) => !checks[check]);
  const reasons = failed.filter((check) => check !== "keys" || store?.emptied !== true).map((check) => why[check]);
  return { ready: failed.length === 0, checks, reasons: [...reasons, ...(store?.faults ?? [])] };
}
