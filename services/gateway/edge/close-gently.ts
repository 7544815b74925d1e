import { setImmediate } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import type { Clock } from "#shared/process/clock.ts";

/** How often connections are looked through for such as have become idle. */
const lookEveryMs = 50;
/** How long what was cut at the deadline has to reach its client. */
const lastWordsMs = 250;

/**
 * Closes a server: no new connections at once, idle ones at once and the others as soon as their answer is out. A
 * client that keeps its connection, or does not read, holds nothing up past the deadline.
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
    // Node says that a server has closed before it says so of the last connection, whose request is yet to hear it: that
    // comes at the end of this turn of the event loop, and what is set in the next one comes after it.
    await setImmediate();
    await setImmediate();
  } finally {
    looking.cancel();
  }
}
