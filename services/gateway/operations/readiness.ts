import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { KnownKeys } from "../access/known-keys.ts";

export interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<"serving" | "broker" | "keys", boolean>>;
}

/**
 * Whether this gateway can serve: it is not about to stop, the broker answers, and the key store does or was away for so
 * short a time that known keys go on. All gateways may lose their store at once, and none is to be taken out for that.
 */
export async function readiness(parts: {
  readonly broker: Broker;
  readonly keys: Pick<KeyStore, "ready">;
  readonly knownKeys: Pick<KnownKeys, "goOn">;
  readonly draining: () => boolean;
}): Promise<Readiness> {
  const keys = await parts.keys.ready().then(
    () => true,
    () => parts.knownKeys.goOn,
  );
  const checks = { serving: !parts.draining(), broker: parts.broker.connected, keys };
  return { ready: Object.values(checks).every(Boolean), checks };
}
