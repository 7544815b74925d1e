import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Actor } from "#shared/keys/audit-entry.ts";
import { changeKey } from "#shared/keys/change-key.ts";
import { checkKey } from "#shared/keys/check-key.ts";
import { issueKey } from "#shared/keys/issue-key.ts";
import { parseKeyToken, type KeyId, type KeyToken } from "#shared/keys/key-token.ts";
import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import { makeStateFolder } from "#shared/keys/state-folder.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";

const dayMs = 86_400_000;
const ttlMs = 365 * dayMs;
/** A key with less than this left is extended, so that none runs out while it is in use. */
const extendBelowMs = 90 * dayMs;
const actor: Actor = { by: "trunkline up" };

interface OwnKeyMeans {
  readonly stateDir: string;
  readonly store: Pick<OpenedKeyStore, "keys" | "peppers">;
  readonly lifecycle: Pick<Lifecycle, "onStop">;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
}

/**
 * The key that `trunkline up` shows: made at the first start and kept in the state folder, for its owner alone. It is
 * extended before it expires, at the start and while the process runs; another takes its place only at a start at which
 * it does not work any more.
 */
export async function ownKey(means: OwnKeyMeans): Promise<string> {
  makeStateFolder(means.stateDir);
  const token = (await keptToken(means)) ?? (await newToken(means));
  await extendInTime(token.id, means);
  const timer = means.clock.every(dayMs, () => void extendInTime(token.id, means));
  means.lifecycle.onStop("own key", () => timer.cancel());
  return token.reveal();
}

async function keptToken({ stateDir, store, clock, log }: OwnKeyMeans): Promise<KeyToken | undefined> {
  const { keys, peppers } = store;
  const kept = parseKeyToken(readKept(fileIn(stateDir)));
  if (kept.outcome !== "parsed") return undefined;
  const { token } = kept;
  if ((await keys.peppers()).length === 0) {
    log.warn({ key: token.id }, "there was a key before, and this store has never had any: it is begun anew");
    return undefined;
  }
  const { outcome } = await checkKey({ token, keys, peppers, nowMs: clock.wall() });
  return outcome === "valid" ? token : undefined;
}

async function newToken({ stateDir, store, clock }: OwnKeyMeans): Promise<KeyToken> {
  const { keys, peppers } = store;
  const { token } = await issueKey({ name: "trunkline up", scopes: ["*"], ttlMs }, { keys, peppers, clock, actor });
  const file = fileIn(stateDir);
  writeFileSync(`${file}.new`, `${token.reveal()}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return token;
}

/** Of a key that an operator took back nothing is said: the change is refused, and is to be. */
async function extendInTime(id: KeyId, { store: { keys }, clock, log }: OwnKeyMeans): Promise<void> {
  try {
    const found = await keys.find(id);
    if (found.kind !== "record" || found.record.expiresAt - clock.wall() >= extendBelowMs) return;
    await changeKey(id, { action: "extended", ttlMs }, { keys, clock, actor });
  } catch (error) {
    log.warn({ err: error, key: id }, "the own key could not be extended; another attempt follows in a day");
  }
}

function fileIn(stateDir: string): string {
  return join(stateDir, "key");
}

/** Nothing when there is no key yet, or none that this user may read. */
function readKept(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "";
  }
}
