import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import { connectRedis, type RedisConnection } from "../process/redis-connection.ts";
import { exitCodes, StartFailure } from "../process/start-failure.ts";
import type { KeyStore } from "./key-store.ts";
import { pepperText, type Pepper } from "./pepper.ts";
import { pepperFile, readOrMakePepper } from "./pepper-file.ts";
import { RedisKeyStore } from "./redis-key-store.ts";
import { SqliteKeyStore } from "./sqlite-key-store.ts";
import { openStateDatabase, type StateDatabase } from "./state-database.ts";

const redisUrl = z
  .string()
  .refine(
    isRedisUrl,
    "must be a URL that begins with redis:// or rediss://, special characters of a password percent-encoded",
  );

/** What every process that works with keys reads from its environment. */
export const keyStoreVariables = {
  TRUNKLINE_REDIS_URL: redisUrl.optional(),
  TRUNKLINE_STATE_DIR: z.string().default(".trunkline"),
  TRUNKLINE_KEY_PEPPER: pepperText.optional(),
};

export interface KeyStoreSettings {
  readonly redisUrl?: string | undefined;
  /** Where the embedded store and its pepper are; not touched when there is Redis. */
  readonly stateDir: string;
  readonly pepper?: Pepper | undefined;
}

export function keyStoreSettings(config: z.output<z.ZodObject<typeof keyStoreVariables>>): KeyStoreSettings {
  return {
    redisUrl: config.TRUNKLINE_REDIS_URL,
    stateDir: config.TRUNKLINE_STATE_DIR,
    pepper: config.TRUNKLINE_KEY_PEPPER,
  };
}

/** What the keys stand on, for what is kept beside them. It ends when the key store is closed. */
export type StateStore =
  | { readonly kind: "redis"; readonly redis: RedisConnection }
  | { readonly kind: "sqlite"; readonly database: StateDatabase };

export interface OpenedKeyStore {
  readonly keys: KeyStore;
  readonly pepper: Pepper;
  readonly state: StateStore;
}

/** Opens the store that the settings choose, with the pepper that its keys were made with, or says why it cannot. */
export async function openKeyStore(
  settings: KeyStoreSettings,
  means: { readonly clock: Pick<Clock, "wall">; readonly log?: Pick<Log, "info" | "warn"> | undefined },
): Promise<OpenedKeyStore> {
  const opened =
    settings.redisUrl === undefined
      ? openEmbedded(settings, means.clock)
      : await openRedis({ url: settings.redisUrl, pepper: settings.pepper, log: means.log });
  try {
    await insistOnPepper(opened, settings);
  } catch (error) {
    await opened.keys.close();
    if (!(error instanceof Fault)) throw error;
    throw new StartFailure(exitCodes.unavailable, `The key store does not work: ${error.internal ?? error.message}.`);
  }
  return opened;
}

async function openRedis(options: {
  readonly url: string;
  readonly pepper: Pepper | undefined;
  readonly log: Pick<Log, "info" | "warn"> | undefined;
}): Promise<OpenedKeyStore> {
  if (options.pepper === undefined) {
    throw new StartFailure(
      exitCodes.config,
      "With TRUNKLINE_REDIS_URL a pepper is needed too: set TRUNKLINE_KEY_PEPPER to one secret for all gateways, for instance from: openssl rand -base64 32",
    );
  }
  const redis = await connectRedis({ url: options.url, log: options.log });
  return { keys: new RedisKeyStore(redis), pepper: options.pepper, state: { kind: "redis", redis } };
}

function openEmbedded(settings: KeyStoreSettings, clock: Pick<Clock, "wall">): OpenedKeyStore {
  const pepper = settings.pepper ?? readOrMakePepper(settings.stateDir);
  const database = openStateDatabase(settings.stateDir);
  return { keys: new SqliteKeyStore(database, { clock }), pepper, state: { kind: "sqlite", database } };
}

async function insistOnPepper(opened: OpenedKeyStore, settings: KeyStoreSettings): Promise<void> {
  if ((await opened.keys.claimPepper(opened.pepper.fingerprint)) !== "mismatch") return;
  const remedy =
    settings.pepper === undefined
      ? `restore the file ${pepperFile(settings.stateDir)}, or set TRUNKLINE_KEY_PEPPER to theirs`
      : "set TRUNKLINE_KEY_PEPPER to theirs, or leave it unset if theirs is the one in the state folder";
  throw new StartFailure(exitCodes.config, `The keys in this store were made with another pepper: ${remedy}.`);
}

function isRedisUrl(text: string): boolean {
  try {
    const url = new URL(text);
    decodeURIComponent(url.username + url.password);
    return url.protocol === "redis:" || url.protocol === "rediss:";
  } catch {
    return false;
  }
}
