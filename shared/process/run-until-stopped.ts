import { bearYoung } from "./born-young.ts";
import { systemClock } from "./clock.ts";
import type { Environment } from "./config.ts";
import { Lifecycle, untilToldToStop } from "./lifecycle.ts";
import type { Log } from "./log.ts";
import { watchNpm } from "./watch-npm.ts";

/**
 * Runs a long-running process until a signal, until the npm that started it has ended, or until a part fails. That
 * part's error is thrown after the stop. Work under way may finish within `drainMs`; a second signal ends the process
 * at once. A failed start stops all started parts.
 */
export async function runUntilStopped(options: {
  readonly environment: Environment;
  readonly drainMs: number;
  readonly log: Log;
  readonly start: (lifecycle: Lifecycle) => Promise<void>;
  /** Called when the process begins to stop, before any part is stopped. */
  readonly onStopping?: () => void;
}): Promise<void> {
  const { environment, drainMs, log, start } = options;
  bearYoung();
  const lifecycle = new Lifecycle({ clock: systemClock, log });
  const told = untilToldToStop(watchNpm({ environment, lifecycle, clock: systemClock }));
  try {
    await start(lifecycle);
  } catch (error) {
    await lifecycle.stop(0);
    throw error;
  }
  const reason = await Promise.race([told, lifecycle.failed]);
  options.onStopping?.();
  if (reason instanceof Error) log.error({ reason: reason.message, drainMs }, "stopping");
  else log.info({ reason, drainMs }, "stopping");
  await lifecycle.stop(drainMs);
  log.info("stopped");
  if (reason instanceof Error) throw reason;
}
