import { hostname, userInfo } from "node:os";
import { resolve } from "node:path";
import { Fault, faultEntry } from "#shared/fault/fault.ts";
import type { Actor } from "#shared/records/audit-entry.ts";
import { type KeyChanged, recordAfter, replicatedIn } from "#shared/records/change-key.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { type Replication, replicaWaitMs } from "#shared/records/key-store.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { keyStoreSettings } from "#shared/store/key-store-settings.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { readConfig } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { JsonOption, CliContext } from "../terminal/command-line.ts";

/**
 * Timeout of the key store. An operator prefers to wait for a far Redis, or for another process's write, to a failure.
 */
export const patienceMs = 5_000;
const charactersMax = 200;

/** The opened key store, with the actor that the audit trail names. */
type CommandStore = OpenedKeyStore & { readonly actor: Actor };

/**
 * Runs one command on the key store that the environment names. Reports a failing store to the operator. At the end it
 * prints the store's full location: an unset variable or another working directory selects another store. With `--json`
 * the location is not printed.
 */
export async function withKeyStore<Result>(
  { environment, stderr, clock }: CliContext,
  { json }: JsonOption,
  work: (store: CommandStore) => Promise<Result>,
): Promise<Result> {
  const settings = readConfig(keyStoreSettings, environment);
  const { openKeyStore } = await import("#shared/store/open-key-store.ts");
  const store = await openKeyStore({ ...settings, stateDir: resolve(settings.stateDir) }, { clock, patienceMs });
  try {
    const result = await work({ ...store, actor: { by: `cli ${userName()}@${hostname()}`.slice(0, charactersMax) } });
    if (store.clock.fault !== undefined && !json) stderr.write(`Beware: ${store.clock.fault}.\n`);
    if (!json) stderr.write(`Key store: ${store.place}\n`);
    return result;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (faultEntry(error.code).status < 500) throw new StartFailure(exitCodes.failed, error.message);
    throw new StartFailure(exitCodes.unavailable, `The key store does not work: ${error.internal ?? error.message}.`);
  } finally {
    await store.keys.close();
  }
}

/** A change that was made, with its result for programs and in words. */
interface ToldChange {
  readonly changed?: { readonly replication?: Replication };
  readonly shown: object;
  readonly say: () => string;
}

/** Makes a change on the key store and tells its result. */
export async function tellChange(
  context: CliContext,
  given: JsonOption,
  change: (store: CommandStore) => Promise<ToldChange>,
): Promise<void> {
  await withKeyStore(context, given, async (store) => {
    const { changed = {}, shown, say } = await change(store);
    context.stdout.write(`${given.json ? JSON.stringify({ ...shown, ...replicatedIn(changed) }) : say()}\n`);
    context.stderr.write(replicationLine(changed));
  });
}

export const whichStoreHelp = `
Keys are kept in Redis when TRUNKLINE_REDIS_URL is set (TRUNKLINE_KEY_PEPPER is needed too), otherwise in the folder
TRUNKLINE_STATE_DIR (.trunkline), also while a "trunkline up" is running on it. Each command says where it was.`;

/** Returns the user's name, or the user's number: in a container a user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "somebody");
  }
}

export function changedRecord(changed: KeyChanged, { id, place }: { id: KeyId; place: string }): KeyRecord | undefined {
  return recordAfter(changed, (refusal) =>
    refusal === undefined ? noSuchKey(id, place) : new StartFailure(exitCodes.failed, `The key ${id} ${refusal}.`),
  );
}

/** Returns a warning about a change that a failover of the store can lose. Empty for any other change. */
export function replicationLine({ replication }: { readonly replication?: Replication }): string {
  if (replication !== "unconfirmed") return "";
  return `No replica of Redis confirmed this within ${replicaWaitMs} ms (replicaWaitMs): a failover now can undo it. Repeat it until this line stays away; if Redis has no replica any more, remove the name trunkline:replica from it.\n`;
}

/** Says that a list leaves records out. Empty for a whole list. */
export function unreadLine({ length }: readonly object[]): string {
  return length === 0
    ? ""
    : `Records that this version cannot read, left out: ${length}. \`trunkline doctor site\` names them.\n`;
}

export function noSuchKey(id: KeyId, place: string): StartFailure {
  return new StartFailure(exitCodes.failed, `There is no key ${id} in ${place}: \`trunkline keys list\` shows all.`);
}
