import { resolve } from "node:path";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { keyStoreSettings, keyStoreVariables, openKeyStore, type OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import { readConfig } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import type { GivenJson } from "./json-option.ts";
import type { Surroundings } from "./surroundings.ts";

/** An operator would rather wait than read that nothing came of it: for a far Redis, or another process's write. */
const patienceMs = 5_000;

/**
 * One command's work on the keys that the environment names; a store that fails meanwhile is told to the operator.
 * Which store it was is said last, in full, since a variable that is not set or another working directory makes it
 * another one. Programs, who asked for JSON, are not told.
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
    if (!json) surroundings.stderr.write(`Key store: ${opened.place}\n`);
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
