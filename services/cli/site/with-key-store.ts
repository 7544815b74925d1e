import { hostname, userInfo } from "node:os";
import { resolve } from "node:path";
import { Fault, faultEntry } from "#shared/fault/fault.ts";
import type { AdminSite } from "#shared/admin/operation.ts";
import { replicaWaitMs } from "#shared/records/key-store.ts";
import { currencySetting } from "#shared/money/currency-setting.ts";
import { keyStoreSettings } from "#shared/store/key-store-settings.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { readConfig } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { JsonOption, CliContext, Workplace } from "../terminal/command-line.ts";

/**
 * Timeout of the key store. An operator prefers to wait for a far Redis, or for another process's write, to a failure.
 */
export const patienceMs = 5_000;
const charactersMax = 200;

/** The opened store of a site, as its owner works on it. */
export type CommandStore = OpenedKeyStore & AdminSite;

/**
 * Runs one command on the key store that the environment names. Reports a failing store to the operator. At the end it
 * prints the store's full location: an unset variable or another working directory selects another store. With `--json`
 * the location is not printed.
 */
export async function withKeyStore<Result>(
  context: CliContext,
  { json }: JsonOption,
  work: (store: CommandStore) => Promise<Result>,
): Promise<Result> {
  const { environment, stderr, clock } = context;
  const settings = readConfig(keyStoreSettings.extend(currencySetting), environment);
  const { openKeyStore } = await import("#shared/store/open-key-store.ts");
  const { openAlarmStore } = await import("#shared/alerts/alarm-store.ts");
  const { openEndUsers } = await import("#shared/usage/end-users.ts");
  const { openUsage } = await import("#shared/usage/usage.ts");
  const { openHistory } = await import("#shared/history/history.ts");
  const { openRequests } = await import("#shared/requests/request-records.ts");
  const store = await openKeyStore({ ...settings, stateDir: resolve(settings.stateDir) }, { clock, patienceMs });
  const site: CommandStore = {
    ...store,
    currency: settings.currency,
    usage: openUsage(store.state),
    endUsers: openEndUsers(store.state),
    history: openHistory(store.state),
    alarms: openAlarmStore(store.state),
    requests: openRequests(store.state),
    isNameUsed: async (name) => (await import("./operations-port.ts")).isNameUsed(name, context),
    actor: { by: `cli ${userName()}@${hostname()}`.slice(0, charactersMax) },
  };
  try {
    const result = await work(site);
    if (store.clock.fault !== undefined && !json) stderr.write(`Beware: ${store.clock.fault}.\n`);
    if (!json) stderr.write(`Key store: ${store.place}\n`);
    return result;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (faultEntry(error.code).status >= 500)
      throw new StartFailure(exitCodes.unavailable, `The key store does not work: ${error.internal ?? error.message}.`);
    throw new StartFailure(exitCodes.failed, error.message);
  } finally {
    await store.keys.close();
  }
}

/** The key store that the environment names, for `CliCommand.does`. */
export const onStore: Workplace<CommandStore> = {
  open: (context, given, work) =>
    withKeyStore(context, given, async (store) => {
      const told = await work(store);
      context.stderr.write(replicationLine(told?.answer) + unreadLine(told?.unread ?? 0));
    }),
};

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

/** Returns a warning about a change that a failover of the store can lose. Empty for any other change. */
export function replicationLine(answer: unknown): string {
  if (Object(answer).replicated !== false) return "";
  return `No replica of Redis confirmed this within ${replicaWaitMs} ms (replicaWaitMs): a failover now can undo it. Repeat it until this line stays away; if Redis has no replica any more, remove the name trunkline:replica from it.\n`;
}

/** Says that a list leaves records out. Empty for a whole list. */
function unreadLine(unread: number): string {
  return unread === 0
    ? ""
    : `Records that this version cannot read, left out: ${unread}. \`trunkline doctor site\` names them.\n`;
}
