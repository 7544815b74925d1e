import { openAlarmStore } from "#shared/alerts/alarm-store.ts";
import type { AlertRecord } from "#shared/records/alert-record.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import type { AlertSender } from "./alerts/alert-sender.ts";
import type { WatchedSite } from "./alerts/read-conditions.ts";
import type { SiteWatch } from "./alerts/watch-site.ts";
import type { Exposition } from "./metrics/exposition.ts";
import { openLease } from "./placing/redis-lease.ts";

interface AlertParts extends WatchedSite {
  readonly targets: { all(): readonly AlertRecord[] };
  readonly sender: AlertSender;
  /** The token of this boot of this gateway. */
  readonly gateway: string;
  readonly exposition: Exposition;
  readonly lifecycle: Lifecycle;
  readonly log: Log;
}

/** Calls alert targets when something is wrong with the site. What that takes is loaded once there is a target. */
export function openAlerts(parts: AlertParts): void {
  const { targets, store, gateway, exposition, lifecycle, timing, clock } = parts;
  const { alertCalls } = exposition.counters(["kind", "outcome"], {
    alertCalls: "Calls of alert targets, by the kind of the alarm; the outcome is sent or failed.",
  });
  let watch: SiteWatch | undefined;
  const look = async (): Promise<void> => {
    if (targets.all().length === 0) return;
    const { SiteWatch: Watch } = await import("./alerts/watch-site.ts");
    watch ??= new Watch({
      ...parts,
      alarms: openAlarmStore(store.state),
      lease: openLease(store.state, { name: "alarms-lease", gateway, forMs: timing.alertLeaseMs }),
      onCall: (kind, outcome) => alertCalls.inc({ kind, outcome }),
    });
    watch.look();
  };
  const rounds = clock.every(timing.alertIntervalMs, () => void look());
  lifecycle.onStop("alerts", async (deadline) => {
    rounds.cancel();
    await watch?.stop(deadline);
  });
}
