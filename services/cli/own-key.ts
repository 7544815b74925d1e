import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Actor } from "#shared/keys/audit-entry.ts";
import { changeKey } from "#shared/keys/change-key.ts";
import { checkKey } from "#shared/keys/check-key.ts";
import { adminTtlMsMax, issueKey } from "#shared/keys/issue-key.ts";
import { parseKeyToken, type KeyId, type KeyKind, type KeyToken } from "#shared/keys/key-token.ts";
import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import { makeStateFolder } from "#shared/keys/state-folder.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";

const dayMs = 86_400_000;
const actor: Actor = { by: "trunkline up" };

/** A key that `trunkline up` has for itself. */
interface Own {
  readonly kind: KeyKind;
  readonly name: string;
  /** Of the state folder. */
  readonly file: string;
  readonly ttlMs: number;
  /** A key with less than this left is extended, so that none runs out while it is in use. */
  readonly extendBelowMs: number;
}

const forChats: Own = {
  kind: "model",
  name: "trunkline up",
  file: "key",
  ttlMs: 365 * dayMs,
  extendBelowMs: 90 * dayMs,
};
const forOperators: Own = {
  kind: "admin",
  name: "trunkline up, for operators",
  file: "admin-key",
  ttlMs: adminTtlMsMax,
  extendBelowMs: 30 * dayMs,
};

interface OwnKeyMeans {
  readonly stateDir: string;
  readonly store: Pick<OpenedKeyStore, "keys" | "peppers">;
  readonly lifecycle: Pick<Lifecycle, "onStop">;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
}

/** The key that `trunkline up` shows. */
export async function ownKey(means: OwnKeyMeans): Promise<string> {
  return (await keep(forChats, means)).reveal();
}

/** The key with which the command line on this machine works on a running `trunkline up`. */
export async function keepAdminKey(means: OwnKeyMeans): Promise<void> {
  await keep(forOperators, means);
}

/** Where `trunkline up` keeps its admin key. */
export function adminKeyFile(stateDir: string): string {
  return join(stateDir, forOperators.file);
}

/**
 * A key of one's own: made at the first start and kept in the state folder, for its owner alone. It is extended before
 * it expires, at the start and while the process runs; another takes its place only at a start at which it does not work
 * any more.
 */
async function keep(own: Own, means: OwnKeyMeans): Promise<KeyToken> {
  makeStateFolder(means.stateDir);
  const token = (await keptToken(own, means)) ?? (await newToken(own, means));
  await extendInTime(token.id, own, means);
  const timer = means.clock.every(dayMs, () => void extendInTime(token.id, own, means));
  means.lifecycle.onStop(`own ${own.kind} key`, () => timer.cancel());
  return token;
}

async function keptToken(own: Own, { stateDir, store, clock, log }: OwnKeyMeans): Promise<KeyToken | undefined> {
  const { keys, peppers } = store;
  const kept = parseKeyToken(readKept(join(stateDir, own.file)));
  if (kept.outcome !== "parsed" || kept.token.kind !== own.kind) return undefined;
  const { token } = kept;
  if ((await keys.peppers()).length === 0) {
    log.warn({ key: token.id }, "there was a key before, and this store has never had any: it is begun anew");
    return undefined;
  }
  const { outcome } = await checkKey({ token, keys, peppers, nowMs: clock.wall() });
  return outcome === "valid" ? token : undefined;
}

async function newToken({ kind, name, file, ttlMs }: Own, { stateDir, store, clock }: OwnKeyMeans): Promise<KeyToken> {
  const { keys, peppers } = store;
  const { token } = await issueKey({ kind, name, scopes: ["*"], ttlMs }, { keys, peppers, clock, actor });
  const path = join(stateDir, file);
  writeFileSync(`${path}.new`, `${token.reveal()}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return token;
}

/** Of a key that an operator took back nothing is said: the change is refused, and is to be. */
async function extendInTime(id: KeyId, own: Own, { store: { keys }, clock, log }: OwnKeyMeans): Promise<void> {
  const { ttlMs, extendBelowMs } = own;
  try {
    const found = await keys.find(id);
    if (found.kind !== "record" || found.record.expiresAt - clock.wall() >= extendBelowMs) return;
    await changeKey(id, { action: "extended", ttlMs }, { keys, clock, actor });
  } catch (error) {
    log.warn({ err: error, key: id }, "the own key could not be extended; another attempt follows in a day");
  }
}

/** Nothing when there is no key yet, or none that this user may read. */
function readKept(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "";
  }
}
