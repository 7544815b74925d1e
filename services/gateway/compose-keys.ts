import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { BadKeys } from "./keys/bad-keys.ts";
import { RunningRequests } from "./keys/authenticate.ts";
import { followKeyChanges, NewestRecords } from "./keys/follow-key-changes.ts";
import { KnownKeys, moveToNewPepper } from "./keys/known-keys.ts";
import { StoreWatch } from "./keys/store-watch.ts";
import type { GatewayConfig } from "./config.ts";
import type { MachineRecords } from "./fleet/machine-records.ts";
import type { RouteRecords } from "./fleet/route-records.ts";

interface KeyParts {
  readonly config: Pick<GatewayConfig, "keysAwayMs">;
  readonly store: OpenedKeyStore;
  readonly lifecycle: Lifecycle;
  readonly log: Log;
}

/** The parts of a gateway that check keys and follow their changes. */
export interface Access {
  readonly knownKeys: KnownKeys;
  readonly newest: NewestRecords;
  readonly badKeys: BadKeys;
  readonly running: RunningRequests;
  readonly watch: StoreWatch;
}

/** Opens the parts that check keys, and follows the changes of keys, machine records and routes. */
export async function openAccess(
  { config, store, lifecycle, log }: KeyParts,
  records: { readonly machines: MachineRecords; readonly routes: RouteRecords },
): Promise<Access> {
  const { keys, peppers, clock } = store;
  const running = new RunningRequests();
  const newest = new NewestRecords({ keys, log });
  const knownKeys = new KnownKeys({
    keys: newest,
    peppers,
    clock,
    awayMs: config.keysAwayMs,
    onOldPepper: (token, { record }) => void moveToNewPepper({ token, record }, { keys, peppers, clock, log }),
  });
  const changes = await store.openChanges();
  lifecycle.onStop("key changes", () => changes.close());
  followKeyChanges({
    changes,
    keys,
    knownKeys,
    newest,
    running,
    machines: records.machines.follow,
    routes: records.routes.follow,
    log,
  });
  const watch = new StoreWatch({ keys, judged: newest, clock, log });
  lifecycle.onStop("store watch", () => watch.stop());
  await watch.look().catch(() => undefined);
  return { knownKeys, newest, badKeys: new BadKeys(clock), running, watch };
}
