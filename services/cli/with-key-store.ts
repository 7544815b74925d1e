import { resolve } from "node:path";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { keyStoreSettings, keyStoreVariables, openKeyStore, type OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import { readConfig } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import type { GivenJson } from "./json-option.ts";
import type { Surroundings } from "./surroundings.ts";

/**
 * Timeout of the key store. An operator prefers to wait for a far Redis, or for another process's write, to a failure.
 */
const patienceMs = 5_000;

/**
 * Runs one command on the key store that the environment names. Reports a failing store to the operator. At the end it
 * prints the store's full location: an unset variable or another working directory selects another store. With `--json`
 * the location is not printed.
 */
export async function withKeyStore(
  surroundings: Surroundings,
  { json }: GivenJson,
  work: (opened: OpenedKeyStore) => Promise<void>,
): Promise<void> {
  const settings = keyStoreSettings(readConfig(z.object(keyStoreVariables), surroundings.environment));
  const opened = await openKeyStore(
    { ...settings, stateDir: resolve(settings.stateDir) },
    { clock: surroundings.clock, patienceMs },
  );
  try {
    await work(opened);
    const { place, clock } = opened;
    if (json) return;
    if (clock.fault !== undefined) surroundings.stderr.write(`Beware: ${clock.fault}.\n`);
    surroundings.stderr.write(`Key store: ${place}\n`);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new StartFailure(exitCodes.unavailable, `The key store does not work: ${error.internal ?? error.message}.`);
  } finally {
    await opened.keys.close();
  }
}

export const whichStoreHelp = `
Keys are kept in Redis when TRUNKLINE_REDIS_URL is set (TRUNKLINE_KEY_PEPPER is needed too), otherwise in the folder
TRUNKLINE_STATE_DIR (.trunkline), also while a "trunkline up" is running on it. Each command says where it was.`;
