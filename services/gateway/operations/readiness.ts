import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { KnownKeys } from "../access/known-keys.ts";
import type { BrokerWatch } from "../meters/broker-watch.ts";
import { probe, probeWithinMs } from "../meters/probe.ts";

export interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<"serving" | "broker" | "keys", boolean>>;
  /** Why it cannot serve, in words; none while it can. */
  readonly reasons: readonly string[];
}

/**
 * Whether this gateway can serve: it is not about to stop, the broker answers, and the key store does or was away for so
 * short a time that known keys go on. All gateways may lose their store at once, and none is to be taken out for that.
 * It is said in time whatever hangs, since a balancer that waits for it does not turn away.
 */
export async function readiness(parts: {
  readonly broker: Pick<Broker, "connected">;
  readonly brokerWatch: Pick<BrokerWatch, "awayMs">;
  readonly keys: Pick<KeyStore, "ready">;
  readonly knownKeys: Pick<KnownKeys, "goOn">;
  readonly clock: Clock;
  readonly draining: () => boolean;
}): Promise<Readiness> {
  const { keys, knownKeys, clock } = parts;
  const answered = await probe(clock, () => keys.ready());
  const checks = {
    serving: !parts.draining(),
    broker: parts.broker.connected,
    keys: typeof answered === "number" || knownKeys.goOn,
  };
  const awayMs = parts.brokerWatch.awayMs ?? 0;
  const why: Readonly<Record<keyof typeof checks, string>> = {
    serving: "this gateway shuts down",
    broker: `NATS is not connected since ${Math.round(awayMs / 1_000)} s`,
    keys: `the key store ${answered === "late" ? `does not answer within ${probeWithinMs} ms` : "cannot be asked"}, and known keys do not go on without it (TRUNKLINE_KEYS_AWAY_MS)`,
  };
  const reasons = (["serving", "broker", "keys"] as const).flatMap((check) => (checks[check] ? [] : [why[check]]));
  return { ready: reasons.length === 0, checks, reasons };
}
