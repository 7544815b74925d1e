import { bearYoung } from "./born-young.ts";
import { systemClock } from "./clock.ts";
import type { Environment } from "./config.ts";
import { Lifecycle, untilToldToStop } from "./lifecycle.ts";
import type { Log } from "./log.ts";
import { watchNpm } from "./watch-npm.ts";

/**
 * Starts a long-running process and stops it in order when it is told to, when the npm that started it has gone, or when
 * a part of it cannot go on, which it then throws: work under way may finish within `drainMs`, and a second signal ends
 * the process at once. What was started when the start fails is stopped again.
 */
export async function runUntilStopped(options: {
  readonly environment: Environment;
  readonly drainMs: number;
  readonly log: Log;
  readonly start: (lifecycle: Lifecycle) => Promise<void>;
  /** Called when it is told to stop, before anything is. */
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
