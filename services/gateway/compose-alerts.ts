import { openAlarmStore } from "#shared/alerts/alarm-store.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { SiteWatch, WatchParts } from "./alerts/watch-site.ts";
import { openLease } from "./placing/redis-lease.ts";

interface AlertParts extends Omit<WatchParts, "alarms" | "lease" | "onCall"> {
  readonly meters: { readonly alertCalled: WatchParts["onCall"] };
  readonly lifecycle: Lifecycle;
}

/** Calls alert targets when something is wrong with the site. What that takes is loaded once there is a target. */
export function openAlerts(parts: AlertParts): void {
  const { targets, store, gateway, meters, lifecycle, timing, clock, log } = parts;
  let watch: SiteWatch | undefined;
  /** Calls `then` once there was a target. */
  const watching = async (then: (watch: SiteWatch) => unknown): Promise<void> => {
    if (watch === undefined && targets.all().length === 0) return;
    const { SiteWatch: Watch } = await import("./alerts/watch-site.ts");
    watch ??= new Watch({
      ...parts,
      alarms: openAlarmStore(store.state),
      lease: openLease(store.state, { name: "alarms-lease", gateway, forMs: timing.alertLeaseMs }),
      onCall: meters.alertCalled,
    });
    await then(watch);
  };
  // A package that was replaced under a running gateway may have the file no more.
  const failed = (error: unknown): void => log.error({ err: error }, "the watch of the site could not begin");
  const rounds = clock.every(timing.alertIntervalMs, () => void watching((each) => each.look()).catch(failed));
  lifecycle.onStop("alerts", async (deadline) => {
    rounds.cancel();
    await watching((each) => each.stop(deadline));
  });
}
