import type { KeyChanges } from "../records/key-changes.ts";
import { Fault } from "../fault/fault.ts";
import type { MachineStore } from "../records/machine-record.ts";
import { RedisMachineStore } from "./redis-machine-store.ts";
import { SqliteMachineStore } from "./sqlite-machine-store.ts";
import type { Clock } from "../process/clock.ts";
import type { Log } from "../process/log.ts";
import type { NamedStores } from "../records/named-records.ts";
import { sqliteNamed } from "./sqlite-records.ts";
import { connectRedis, type RedisConnection } from "../process/redis-connection.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import { type KeyStore, replicaWaitMs } from "../records/key-store.ts";
import { Peppers } from "../keys/pepper.ts";
import type { KeyStoreSettings } from "./key-store-settings.ts";
import { changesTimeoutMs, RedisKeyChanges } from "./redis-key-changes.ts";
import { noteReplica, RedisKeyStore } from "./redis-key-store.ts";
import { redisNamed } from "./redis-records.ts";
import type { SessionStore } from "../records/session-record.ts";
import type { StoredResponses } from "../records/stored-responses.ts";
import { RedisResponseStore } from "./redis-response-store.ts";
import { SqliteResponseStore } from "./sqlite-response-store.ts";
import { RedisSessionStore, SqliteSessionStore } from "./session-stores.ts";
import { SqliteKeyChanges, SqliteKeyStore } from "./sqlite-key-store.ts";
import { openStateDatabase, pepperFile, readOrMakePepper, type StateDatabase } from "./state-database.ts";

/** The backend of the key store, for other data that is stored beside the keys. Closing the key store closes it. */
export type StateStore =
  | { readonly kind: "redis"; readonly redis: RedisConnection }
  | { readonly kind: "sqlite"; readonly database: StateDatabase };

export interface OpenedKeyStore extends NamedStores {
  readonly keys: KeyStore;
  readonly machines: MachineStore;
  readonly sessions: SessionStore;
  readonly responses: StoredResponses;
  /** The content of requests that is captured for admins. */
  readonly captures: StoredResponses;
  readonly peppers: Peppers;
  readonly state: StateStore;
  /** The clock by which keys are judged and changed. */
  readonly clock: StoreClock;
  /** The location of the store for people, without a password. */
  readonly place: string;
  /** Opens the changes, for a process that caches keys. The caller closes them. */
  openChanges(): Promise<KeyChanges>;
}

interface Dependencies {
  readonly clock: Clock;
  readonly log?: Pick<Log, "info" | "warn"> | undefined;
  /**
   * Longest wait for the store, for a caller that has nothing else to do. A gateway leaves it undefined and continues
   * without the store.
   */
  readonly patienceMs?: number | undefined;
}

/**
 * Opens the store that the settings select, with the pepper of its keys. Throws a `StartFailure` with the reason when
 * it cannot.
 */
export async function openKeyStore(settings: KeyStoreSettings, dependencies: Dependencies): Promise<OpenedKeyStore> {
  const { redisUrl: url } = settings;
  const opened =
    url === undefined ? openEmbedded(settings, dependencies) : await openRedis(url, settings, dependencies);
  try {
    await assertPepper(opened, { settings, log: dependencies.log });
  } catch (error) {
    await opened.keys.close();
    if (!(error instanceof Fault)) throw error;
    throw new StartFailure(exitCodes.unavailable, `The key store does not work: ${error.internal ?? error.message}.`);
  }
  return opened;
}

async function openRedis(url: string, settings: KeyStoreSettings, dependencies: Dependencies): Promise<OpenedKeyStore> {
  const { clock, log, patienceMs } = dependencies;
  const { keyPepper: pepper, keyPepperAlso: pepperAlso } = settings;
  if (pepper === undefined) {
    throw new StartFailure(
      exitCodes.config,
      "With TRUNKLINE_REDIS_URL a pepper is needed too: set TRUNKLINE_KEY_PEPPER to one secret for all gateways, for instance from: openssl rand -base64 32",
    );
  }
  const redis = await connectRedis({ url, log, commandTimeoutMs: patienceMs, silenceMsMax: patienceMs });
  // A failure is ignored: Redis may be away again by now. The next process that opens the store then records the
  // replica.
  await noteReplica(redis, "new").catch(() => undefined);
  const storeClock = new StoreClock(clock);
  const waitMs = replicaWaitMs * 2;
  const connectToWait = () => connectRedis({ url, commandTimeoutMs: waitMs, silenceMsMax: waitMs });
  if (log !== undefined) {
    // This user may be denied `INFO`.
    const info = await redis.run("tell how it is set up", (client) => client.info()).catch(() => "");
    for (const doubt of redisDoubts(info)) log.warn(doubt);
  }
  const keys = new RedisKeyStore(redis, { connectToWait });
  const askedAtMs = clock.now();
  const state = await keys.state().catch(() => undefined);
  if (state !== undefined) storeClock.learn(state.wallMs, askedAtMs);
  return {
    keys,
    machines: new RedisMachineStore(redis),
    ...redisNamed(redis),
    sessions: new RedisSessionStore(redis),
    responses: new RedisResponseStore(redis),
    captures: new RedisResponseStore(redis, "capture"),
    clock: storeClock,
    peppers: new Peppers(pepper, pepperAlso),
    state: { kind: "redis", redis },
    place: `Redis at ${new URL(url).host}`,
    openChanges: async () => {
      const own = await connectRedis({ url, commandTimeoutMs: changesTimeoutMs, silenceMsMax: changesTimeoutMs });
      return new RedisKeyChanges(own, { clock });
    },
  };
}

function openEmbedded(settings: KeyStoreSettings, { clock, patienceMs }: Dependencies): OpenedKeyStore {
  const { stateDir, keyPepper: pepper = readOrMakePepper(stateDir), keyPepperAlso: pepperAlso } = settings;
  const database = openStateDatabase(stateDir, { patienceMs });
  const storeClock = new StoreClock(clock);
  return {
    keys: new SqliteKeyStore(database, { clock }),
    machines: new SqliteMachineStore(database),
    ...sqliteNamed(database),
    sessions: new SqliteSessionStore(database),
    responses: new SqliteResponseStore(database, storeClock),
    captures: new SqliteResponseStore(database, storeClock, "capture"),
    clock: storeClock,
    peppers: new Peppers(pepper, pepperAlso),
    state: { kind: "sqlite", database },
    place: `the folder ${stateDir}`,
    openChanges: async () => new SqliteKeyChanges(database, { clock }),
  };
}

async function assertPepper(
  { keys, peppers }: OpenedKeyStore,
  { settings, log }: { settings: KeyStoreSettings; log: Dependencies["log"] },
): Promise<void> {
  const kept = await keys.peppers();
  if (kept.length === 0) return;
  const foreign = kept.filter((fingerprint) => !peppers.knows(fingerprint));
  if (foreign.length < kept.length) {
    if (!kept.includes(peppers.current.fingerprint)) await keys.addPepper(peppers.current.fingerprint);
    if (foreign.length > 0) {
      log?.warn("some keys may still be under a pepper that this process does not have, and then are not judged here");
    }
    return;
  }
  const remedy =
    settings.keyPepper === undefined
      ? `restore the file ${pepperFile(settings.stateDir)}, or set TRUNKLINE_KEY_PEPPER to theirs`
      : "set TRUNKLINE_KEY_PEPPER to theirs, or leave it unset if theirs is the one in the state folder; to replace a pepper, set TRUNKLINE_KEY_PEPPER_ALSO to the other one meanwhile";
  throw new StartFailure(exitCodes.config, `The keys in this store were made with another pepper: ${remedy}.`);
}

/**
 * Returns warnings about the configuration of Redis, read from its `INFO`. Redis must not drop keys, neither to make
 * room for others nor at a restart.
 */
export function redisDoubts(info: string): readonly string[] {
  const settings = new Map(
    info.split(/\r?\n/).map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1)];
    }),
  );
  const policy = settings.get("maxmemory_policy");
  const isBounded = settings.get("maxmemory") !== "0";
  return [
    ...(isBounded && policy !== undefined && policy !== "noeviction"
      ? [`Redis may drop keys when it is full (maxmemory-policy ${policy}): set it to noeviction`]
      : []),
    ...(settings.get("aof_enabled") === "0"
      ? ["Redis may lose the latest keys and revocations when it restarts: set appendonly yes"]
      : []),
  ];
}

/** Largest allowed difference from the clock of the key store. Beyond it the clock of the host counts as wrong. */
const clockSkewMsMax = 5_000;

/**
 * A clock whose wall time is the time that the key store last reported. All hosts thereby agree on when a key expires.
 * The wall time is the host's own until the store has reported its time, and when the store is on this host. Between
 * two reports the monotonic clock counts on, so that setting the host's clock changes nothing.
 */
export class StoreClock implements Clock {
  /** The host's own monotonic clock and timers. */
  readonly now: Clock["now"];
  readonly after: Clock["after"];
  readonly every: Clock["every"];
  readonly #host: Clock;
  #aheadOfNowMs: number | undefined;

  constructor(host: Clock) {
    this.now = host.now.bind(host);
    this.after = host.after.bind(host);
    this.every = host.every.bind(host);
    this.#host = host;
  }

  wall(): number {
    return this.#aheadOfNowMs === undefined ? this.#host.wall() : Math.round(this.#host.now() + this.#aheadOfNowMs);
  }

  /**
   * Sets the wall time from an answer of the store to a request sent at `askedAtMs`. The store read its clock halfway
   * between the request and now.
   */
  learn(storeWallMs: number, askedAtMs: number): void {
    this.#aheadOfNowMs = storeWallMs - (askedAtMs + this.#host.now()) / 2;
  }

  /** Describes how wrong the host's clock is; undefined while the difference is at most `clockSkewMsMax`. */
  get fault(): string | undefined {
    const { skewMs } = this;
    if (Math.abs(skewMs) <= clockSkewMsMax) return undefined;
    const seconds = Math.round(Math.abs(skewMs) / 1_000);
    return `the clock of this host is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} that of Redis (clockSkewMsMax): keys expire by that of Redis; set both by NTP`;
  }

  /** Milliseconds by which the host's clock is ahead of the store's clock. */
  get skewMs(): number {
    return this.#host.wall() - this.wall();
  }
}
