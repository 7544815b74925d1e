import { createReadStream, createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { Fault, reasonOf } from "#shared/fault/fault.ts";
import { type Actor, auditEntriesMax } from "#shared/records/audit-entry.ts";
import { changeKey } from "#shared/records/change-key.ts";
import type { UnreadRecord } from "#shared/records/key-store.ts";
import { noteBackup } from "#shared/store/last-backup.ts";
import type { OpenedKeyStore, StateStore } from "#shared/store/open-key-store.ts";
import { copyEntry, isFounded, SqliteKeyStore } from "#shared/store/sqlite-key-store.ts";
import { openStateDatabase, type StateDatabase, stateFileName } from "#shared/store/state-database.ts";
import { changeMachine } from "#shared/records/change-machine.ts";
import { signInsMax } from "#shared/records/sign-in.ts";
import { SqliteSessionStore } from "#shared/store/session-stores.ts";
import { SqliteMachineStore } from "#shared/store/sqlite-machine-store.ts";
import { systemClock, dayMs, dayOf } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { replace } from "#shared/process/state-folder.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { sqliteNamed } from "#shared/store/sqlite-records.ts";
import { openUsage, usageKeptDays, type UsageTable, usageTables } from "#shared/usage/usage.ts";
import { clearRedis, copyFromRedis, copyToRedis } from "./backup-redis.ts";
import { type LimitsBook, nothingToSettle } from "./limits/limits.ts";
import { SqliteLimitsBook } from "./limits/open-limits.ts";
import { RedisLimitsBook } from "./limits/redis-limits.ts";

const rowsPerSettlement = 250;
/** The most that a backup unpacks to, as a multiple of its size. Equal entries of the trail unpack to 35 times their size, zeros to 1,000. */
const unpackedTimesMax = 100;
/** Bytes that any backup may unpack to. The tables of a new site are mostly empty pages. */
const unpackedBytesAlways = 16 * 1_048_576;
const databaseMagic = Buffer.from("SQLite format 3\0");

type ActingStore = OpenedKeyStore & { readonly actor: Actor };
/** The number of rows by their table. */
type Counts = ReturnType<StateDatabase["counts"]>;

/**
 * A backup that is unpacked: an embedded store of its own. A newer Trunkline is known by the version of the store. The table
 * `extra` has the secrets of the site, and the levels of rates, which an embedded store has in memory.
 */
export interface Backup {
  readonly file: string;
  readonly folder: string;
  readonly database: StateDatabase;
}

/**
 * Writes everything that a store has of its site into a file, and secrets by the names of their settings. Packing adds a
 * checksum. The file appears whole or keeps its old text, and only its owner can read it.
 */
export async function backUp(
  store: ActingStore,
  { file, secrets }: { readonly file: string; readonly secrets: Readonly<Record<string, string>> },
): Promise<Counts> {
  if ((await store.keys.peppers()).length === 0) {
    throw failure(
      `There are no keys in ${store.place}: name another store by TRUNKLINE_REDIS_URL or TRUNKLINE_STATE_DIR`,
    );
  }
  try {
    return await inFolder(join(dirname(file), ".trunkline-backup-"), async (folder) => {
      const counts = await fill(folder, store, secrets);
      const packed = createWriteStream(join(folder, "packed"), { mode: 0o600, flush: true });
      await pipeline(createReadStream(join(folder, stateFileName)), createGzip(), packed);
      replace(file, join(folder, "packed"));
      await noteBackup(store.state, store.clock.wall());
      return counts;
    });
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    throw failure(`${file} cannot be written (${error.message}): name a folder with room where this user may write`);
  }
}

async function fill(folder: string, { keys, state, clock }: ActingStore, secrets: Readonly<Record<string, string>>) {
  if (state.kind === "sqlite") state.database.copyTo(join(folder, stateFileName));
  const database = openStateDatabase(folder);
  try {
    const extra = JSON.stringify({ ...secrets, id: newToken() });
    database.change("begin a backup", (sql) => [
      sql.run`CREATE TABLE extra (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT`,
      // Records and sums of requests are for looking at, and sessions and alarms are of the site where they began: none is restored. The
      // texts of stored responses and the names of end users leave their store by no copy.
      sql.run`DELETE FROM requests`,
      sql.run`DELETE FROM history`,
      sql.run`DELETE FROM sessions`,
      sql.run`DELETE FROM alarms`,
      sql.run`DELETE FROM responses`,
      sql.run`DELETE FROM end_users`,
      sql.run`INSERT INTO extra SELECT key, value FROM json_each(${extra})`,
    ]);
    database.compact();
    if (state.kind === "redis") {
      await copyFromRedis(state.redis, database);
      await copyUsage(state, { book: new SqliteLimitsBook(database, { clock }), id: newToken(), nowMs: clock.wall() });
      const unread: UnreadRecord[] = [];
      const trail = await keys.log({ entriesMax: auditEntriesMax }, unread);
      assertAllRead(unread);
      database.change("back up the trail", (sql) => trail.forEach((entry) => copyEntry(sql, entry)));
    }
    return database.counts();
  } finally {
    database.close();
  }
}

/** Unpacks a backup while `work` runs. Refuses a damaged file, and one of a newer Trunkline. */
export async function withBackup<Result>(file: string, work: (backup: Backup) => Promise<Result>): Promise<Result> {
  return inFolder(join(tmpdir(), "trunkline-restore-"), async (folder) => {
    let database: StateDatabase | undefined;
    try {
      const unpacked = createWriteStream(join(folder, stateFileName), { mode: 0o600 });
      const gunzip = createGunzip();
      await pipeline(createReadStream(file), gunzip, (chunks) => boundedBy(chunks, gunzip), unpacked);
      database = openStateDatabase(folder);
      if (!database.read("tell if it is a backup", isFounded)) throw new Error("there are no keys in it");
      await readAll(database);
    } catch (error) {
      database?.close();
      if (error instanceof StartFailure && error.exitCode === exitCodes.config) {
        throw failure(`${file} is from a newer Trunkline: restore it with that version. Nothing was changed`);
      }
      const reason = (error instanceof Fault && error.internal) || reasonOf(error);
      throw failure(`${file} is no whole backup (${reason}): take another copy. Nothing was changed`);
    }
    try {
      return await work({ file, folder, database });
    } finally {
      database.close();
    }
  });
}

/** Passes on no more bytes than the head of the database names, and than records can pack to. */
async function* boundedBy(chunks: AsyncIterable<Buffer>, packed: { readonly bytesWritten: number }) {
  let bytes = 0;
  let named: number | undefined;
  for await (const chunk of chunks) {
    if (!chunk.subarray(0, 16).equals(databaseMagic) && named === undefined) {
      throw new Error("it does not begin as a backup does");
    }
    // SQLite writes the size of its pages, where 1 is 65,536, and their number.
    named ??= (chunk.readUInt16BE(16) === 1 ? 65_536 : chunk.readUInt16BE(16)) * chunk.readUInt32BE(28);
    bytes += chunk.byteLength;
    if (bytes > named) throw new Error(`it unpacks to more than the ${named} bytes that its beginning names`);
    if (bytes > unpackedBytesAlways + unpackedTimesMax * packed.bytesWritten) {
      throw new Error(`it unpacks to more than ${unpackedTimesMax} times its size (unpackedTimesMax)`);
    }
    yield chunk;
  }
}

/** Reads every record, so that a restore that has begun does not fail on one. */
async function readAll(database: StateDatabase): Promise<void> {
  const [keys, machines] = [new SqliteKeyStore(database, { clock: systemClock }), new SqliteMachineStore(database)];
  const unread: UnreadRecord[] = [];
  await keys.list(unread);
  await keys.log({ entriesMax: auditEntriesMax }, unread);
  await new SqliteSessionStore(database).signIns(signInsMax, unread);
  await machines.list(unread);
  await machines.site();
  for (const store of Object.values(sqliteNamed(database))) await store.list(unread);
  assertAllRead(unread);
  database.counts();
}

/** A backup is whole or refused. */
function assertAllRead([first]: readonly UnreadRecord[]): void {
  if (first !== undefined) throw failure(`the record ${first.name} is of a newer Trunkline: use that version`);
}

export interface Restored {
  readonly counts: Counts;
  /** Keys and machines that were revoked after the backup, and stay so. */
  readonly revoked: readonly string[];
}

/**
 * Replaces everything that a store has of its site by a backup. Gateways that run on the store notice, because the trail
 * that they follow is another one.
 */
export async function restore(
  store: ActingStore,
  { folder, database }: Backup,
  { replaces }: { readonly replaces: boolean },
): Promise<Restored> {
  const { keys, state, clock, place } = store;
  const wasEmptied = (await keys.peppers()).length === 0;
  if (!wasEmptied && !replaces) {
    const { length } = await keys.list();
    throw failure(
      `${place} is not empty (keys: ${length}): name an empty store, or replace everything in it by --replace`,
    );
  }
  const revoked = await keepRevoked(store, database);
  if (state.kind === "sqlite") state.database.replaceBy(join(folder, stateFileName));
  else {
    await clearRedis(state.redis, { wasEmptied });
    const row = database.read("name a backup", (sql) => sql.get`SELECT value FROM extra WHERE name = 'id'`);
    const to = { book: new RedisLimitsBook(state.redis, { clock }), id: String(row?.["value"]), nowMs: clock.wall() };
    await copyUsage({ kind: "sqlite", database }, to);
    await copyToRedis(database, state.redis);
  }
  return { counts: database.counts(), revoked };
}

/** Revokes in a backup the keys and machines that the store to be replaced has as revoked. */
async function keepRevoked(store: ActingStore, database: StateDatabase): Promise<readonly string[]> {
  const { clock, actor } = store;
  const [keys, machines] = [new SqliteKeyStore(database, { clock }), new SqliteMachineStore(database)];
  const revoked: string[] = [];
  const gone = (await store.machines.list()).filter(({ revokedAt }) => revokedAt !== undefined);
  const machineKeys = new Set(gone.map(({ publicKey }) => publicKey));
  for (const entry of await store.keys.log({ entriesMax: auditEntriesMax })) {
    const { action, key, name, detail } = entry;
    if (action === "machine_revoked") machineKeys.add(String(detail?.["public_key"]));
    if (action !== "revoked" || key === undefined) continue;
    const { outcome } = await changeKey(key, { action }, { keys, clock, actor });
    if (outcome === "changed" || outcome === "forgotten") revoked.push(`${key} (${name})`);
    // A later restore may be of a backup that has the key.
    else if (outcome === "unknown") database.change("keep a revocation", (sql) => copyEntry(sql, entry));
  }
  for (const publicKey of machineKeys) {
    const record = await machines.findByKey(publicKey ?? "");
    if (record === undefined || record.revokedAt !== undefined) continue;
    await changeMachine(record.name, { action: "machine_revoked" }, { machines, keys, clock, actor });
    revoked.push(record.name);
  }
  return revoked;
}

/** Adds the usage of a store to a book, day by day. The book counts the usage of one `id` once. */
async function copyUsage(from: StateStore, to: { book: LimitsBook; id: string; nowMs: number }): Promise<void> {
  const usage = openUsage(from);
  const nothing = { ...nothingToSettle, renewed: [], growing: [], demands: [] };
  const tables = Object.keys(usageTables) as UsageTable[];
  let acknowledged = 0;
  for (let ago = usageKeptDays + 1; ago >= -1; ago -= 1) {
    const day = dayOf(to.nowMs - ago * dayMs);
    const kept = tables.filter((table) => ago <= usageTables[table].keptDays + 1);
    const reads = await Promise.all(kept.map((table) => usage.read({ from: day, to: day }, table)));
    const rows = reads.flatMap((read) => read.rows);
    for (; rows.length > 0; acknowledged += 1) {
      const page = rows.splice(0, rowsPerSettlement);
      await to.book.settle({ gateway: to.id, sequence: acknowledged + 1, acknowledged, ...nothing, usage: page });
    }
  }
}

/** Makes a folder for its owner alone, and removes it when `work` has ended. */
async function inFolder<Result>(prefix: string, work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(prefix);
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function failure(message: string): StartFailure {
  return new StartFailure(exitCodes.failed, `${message}.`);
}
