import { checkKey } from "#shared/records/judge-key.ts";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Actor } from "#shared/records/audit-entry.ts";
import { changeKey } from "#shared/records/change-key.ts";
import { adminTtlMsMax, issueKey } from "#shared/records/issue-key.ts";
import { parseKeyToken, type KeyId, type KeyKind, type KeyToken } from "#shared/keys/key-token.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { type Clock, dayMs } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { makeStateFolder, writeStateFile } from "#shared/process/state-folder.ts";

/** The files of the state folder that `trunkline up` keeps for itself and for the commands of this host. */
export const upFiles = { apiKey: "key", adminKey: "admin-key", addresses: "addresses.json" } as const;

const actor: Actor = { by: "trunkline up" };

/** A key that `trunkline up` makes for itself. */
interface Own {
  readonly kind: KeyKind;
  readonly name: string;
  /** The file name in the state folder. */
  readonly file: string;
  readonly ttlMs: number;
  /** The key is extended when less than this is left, so that it never expires while in use. */
  readonly extendBelowMs: number;
}

const forChats: Own = {
  kind: "model",
  name: "trunkline up",
  file: upFiles.apiKey,
  ttlMs: 365 * dayMs,
  extendBelowMs: 90 * dayMs,
};
const forOperators: Own = {
  kind: "admin",
  name: "trunkline up, for operators",
  file: upFiles.adminKey,
  ttlMs: adminTtlMsMax,
  extendBelowMs: 30 * dayMs,
};

interface OwnKeyDependencies {
  readonly stateDir: string;
  readonly store: Pick<OpenedKeyStore, "keys" | "peppers">;
  readonly lifecycle: Pick<Lifecycle, "onStop">;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
}

/** Returns the API key that `trunkline up` shows. */
export async function ownKey(dependencies: OwnKeyDependencies): Promise<string> {
  return (await keep(forChats, dependencies)).reveal();
}

/** Keeps the admin key with which the command line on this machine manages a running `trunkline up`; returns its id. */
export async function keepAdminKey(dependencies: OwnKeyDependencies): Promise<KeyId> {
  return (await keep(forOperators, dependencies)).id;
}

/** Keeps the addresses of a running `trunkline up` in its state folder, for the commands of this host, until it stops. */
export function noteAddresses(
  stateDir: string,
  noted: { readonly baseUrl: string; readonly operationsUrl: string },
  lifecycle: Pick<Lifecycle, "onStop">,
): void {
  const file = join(stateDir, upFiles.addresses);
  const text = `${JSON.stringify(noted)}\n`;
  writeStateFile(file, text);
  lifecycle.onStop("addresses", () => {
    // Another process may have started on this folder meanwhile.
    if (readKept(file) === text) rmSync(file, { force: true });
  });
}

/**
 * Reads the key from the state folder, or makes it at the first start, readable by its owner only. Extends the key
 * before it expires, at the start and while the process runs. Replaces the key only at a start, when it is no longer
 * valid.
 */
async function keep(own: Own, dependencies: OwnKeyDependencies): Promise<KeyToken> {
  makeStateFolder(dependencies.stateDir);
  const token = (await keptToken(own, dependencies)) ?? (await newToken(own, dependencies));
  await extendInTime(token.id, own, dependencies);
  const timer = dependencies.clock.every(dayMs, () => void extendInTime(token.id, own, dependencies));
  dependencies.lifecycle.onStop(`own ${own.kind} key`, () => timer.cancel());
  return token;
}

async function keptToken(own: Own, { stateDir, store, clock, log }: OwnKeyDependencies): Promise<KeyToken | undefined> {
  const { keys, peppers } = store;
  const kept = parseKeyToken(readKept(join(stateDir, own.file)).trim());
  if (kept.outcome !== "parsed" || kept.token.kind !== own.kind) return undefined;
  const { token } = kept;
  if ((await keys.peppers()).length === 0) {
    log.warn({ key: token.id }, "there was a key before, and this store has never had any: it is begun anew");
    return undefined;
  }
  const { outcome } = await checkKey({ token, keys, peppers, nowMs: clock.wall() });
  return outcome === "valid" ? token : undefined;
}

async function newToken(
  { kind, name, file, ttlMs }: Own,
  { stateDir, store, clock }: OwnKeyDependencies,
): Promise<KeyToken> {
  const { keys, peppers } = store;
  const { token } = await issueKey({ kind, name, scopes: ["*"], ttlMs }, { keys, peppers, clock, actor });
  writeStateFile(join(stateDir, file), `${token.reveal()}\n`);
  return token;
}

/**
 * Extends the key when little time is left. A key that an operator disabled or revoked refuses the extension, as it
 * should, and nothing is logged.
 */
async function extendInTime(id: KeyId, own: Own, { store: { keys }, clock, log }: OwnKeyDependencies): Promise<void> {
  const { ttlMs, extendBelowMs } = own;
  try {
    const found = await keys.find(id);
    if (found.kind !== "record" || found.record.expiresAt - clock.wall() >= extendBelowMs) return;
    await changeKey(id, { action: "extended", ttlMs }, { keys, clock, actor });
  } catch (error) {
    log.warn({ err: error, key: id }, "the own key could not be extended; another attempt follows in a day");
  }
}

/** Returns the text of a file; empty when there is none, or when this user may not read it. */
export function readKept(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
