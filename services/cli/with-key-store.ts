import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { keyStoreSettings, keyStoreVariables, openKeyStore, type OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import { readConfig, type Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";

/** One command's work on the keys that the environment names; a store that fails meanwhile is told to the operator. */
export async function withKeyStore<Result>(
  means: { readonly environment: Environment; readonly clock: Clock },
  work: (opened: OpenedKeyStore) => Promise<Result>,
): Promise<Result> {
  const config = readConfig(z.object(keyStoreVariables), means.environment);
  const opened = await openKeyStore(keyStoreSettings(config), { clock: means.clock });
  try {
    return await work(opened);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new StartFailure(exitCodes.unavailable, `The key store does not work: ${error.internal ?? error.message}.`);
  } finally {
    await opened.keys.close();
  }
}
