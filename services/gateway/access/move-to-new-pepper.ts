import { changeKey } from "#shared/keys/change-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { KeyToken } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/peppers.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";

interface Means {
  readonly keys: KeyStore;
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Pick<Log, "warn">;
}

/**
 * Hashes a key that has just proved itself with the pepper of this process, if that is the store's latest. Processes
 * that only accept the new pepper besides their own must not take keys back to the old one.
 */
export async function moveToNewPepper(key: { token: KeyToken; record: KeyRecord }, means: Means): Promise<void> {
  const { token, record } = key;
  const { keys, peppers, clock, log } = means;
  const { current } = peppers;
  try {
    const [latest] = await keys.peppers();
    if (latest !== current.fingerprint) return;
    const secret = { digest: token.digest(current), pepper: current.fingerprint };
    const change = { action: "repeppered", from: record.digest, secret } as const;
    await changeKey(record.id, change, { keys, clock, actor: { by: "gateway" } });
  } catch (error) {
    log.warn({ err: error, key: record.id }, "a key stays under the pepper that is being replaced");
  }
}
