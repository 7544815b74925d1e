import type { Clock } from "./clock.ts";
import type { Environment } from "./config.ts";
import type { Lifecycle } from "./lifecycle.ts";

const lookEveryMs = 250;

/**
 * Aborts when the npm that started this process has gone. `npm start` starts a shell, and that starts us: a signal to npm
 * ends those two and never comes here, so whoever starts Trunkline anew would find this one still there.
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

/** A script of somebody else's may leave us behind on purpose. */
function isOwnScript({ npm_package_name: name, npm_lifecycle_event: script }: Environment): boolean {
  return name === "trunkline" && (script === "start" || script === "trunkline");
}
