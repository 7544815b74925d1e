import type { Log } from "#shared/process/log.ts";
import { alertForm, openAlert, sealAlert } from "#shared/records/alert-record.ts";
import { setRecord } from "#shared/records/change-record.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";

/**
 * Encrypts the secrets of alert targets with the current pepper while one is being replaced, so that the old one can go. A
 * gateway that still has the old pepper as its current one leaves them.
 */
export async function moveAlerts(store: OpenedKeyStore, log: Pick<Log, "warn">): Promise<void> {
  const { alerts, keys, peppers } = store;
  try {
    const [latest] = await keys.peppers();
    if (latest !== peppers.current.fingerprint) return;
    for (const { name, sealed } of await alerts.list()) {
      const opened = openAlert({ name, sealed }, peppers);
      if (!opened?.isOld) continue;
      const moved = { sealed: sealAlert(name, opened, peppers) };
      const change = { name, action: "repeppered" } as const;
      const site = { ...store, actor: { by: "gateway" } };
      await setRecord(alertForm, change, (now) => (now?.sealed === sealed ? moved : {}), site);
    }
  } catch (error) {
    log.warn({ err: error }, "alert targets stay under the pepper that is being replaced");
  }
}
