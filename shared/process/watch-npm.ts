import type { Clock } from "./clock.ts";
import type { Environment } from "./config.ts";
import type { Lifecycle } from "./lifecycle.ts";

const lookEveryMs = 250;

/**
 * Returns a signal that aborts when the npm that started this process has ended. `npm start` starts a shell, and the
 * shell starts this process. A signal to npm ends those two but never reaches this process, so a restart would find it
 * still running.
 */
export function watchNpm(options: {
  readonly environment: Environment;
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  readonly parent?: () => number;
}): AbortSignal {
  const { environment, lifecycle, clock, parent = () => process.ppid } = options;
  const gone = new AbortController();
  if (!isOwnScript(environment)) return gone.signal;
  const first = parent();
  const watch = clock.every(lookEveryMs, () => {
    if (parent() !== first) gone.abort("npm has gone");
  });
  lifecycle.onStop("npm", () => watch.cancel());
  return gone.signal;
}

/**
 * Returns true if a script of this package started the process. A script of another package may detach it on purpose.
 */
function isOwnScript({ npm_package_name: name, npm_lifecycle_event: script }: Environment): boolean {
  return name === "trunkline" && (script === "start" || script === "trunkline");
}
