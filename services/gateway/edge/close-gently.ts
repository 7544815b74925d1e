import { setImmediate } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import type { Clock } from "#shared/process/clock.ts";

/** Interval at which idle connections are closed. */
const lookEveryMs = 50;
/** Time for answers that were cut at the deadline to reach their clients. */
const lastWordsMs = 250;

/**
 * Closes a server. Accepts no new connections, closes idle ones at once, and the others when their answer is sent. A
 * client that keeps its connection, or does not read, delays nothing past the deadline.
 */
export async function closeGently(
  server: FastifyInstance,
  means: { readonly deadline: AbortSignal; readonly clock: Clock },
): Promise<void> {
  const { deadline, clock } = means;
  const looking = clock.every(lookEveryMs, () => server.server.closeIdleConnections());
  const cut = (): void => void clock.after(lastWordsMs, () => server.server.closeAllConnections());
  if (deadline.aborted) cut();
  deadline.addEventListener("abort", cut, { once: true });
  try {
    await server.close();
    // Node reports a server as closed before its last connection emits `close`, and the request must still see that.
    // The event comes at the end of this turn of the event loop. A callback that is set in the next turn comes after
    // it.
    await setImmediate();
    await setImmediate();
  } finally {
    looking.cancel();
  }
}
