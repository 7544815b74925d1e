import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";

export interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<"serving" | "broker" | "keys", boolean>>;
}

/** Whether this gateway can serve: it is not about to stop, and the broker and the key store answer. */
export async function readiness(parts: {
  readonly broker: Broker;
  readonly keys: KeyStore;
  readonly draining: () => boolean;
}): Promise<Readiness> {
  const keys = await parts.keys.ready().then(
    () => true,
    () => false,
  );
  const checks = { serving: !parts.draining(), broker: parts.broker.connected, keys };
  return { ready: Object.values(checks).every(Boolean), checks };
}
