/** What a look may bring back to say «not yet»; every other value ends the wait and is handed to the caller. */
type NotYet = false | null | undefined;

const defaultTimeoutMs = 5_000;
const defaultIntervalMs = 5;
/** The last look starts when the window has closed, so that a stalled machine cannot make a true state look absent. */
const lastLookMs = 100;

/**
 * Waits until a look at some state finds it, and fails with a message that names what was awaited. The only way in
 * which tests wait: nothing sleeps for a time that is hoped to be long enough. A look that throws counts as «not yet»,
 * one that hangs is cut (its signal aborts) when the window closes.
 */
export async function until<T>(
  look: (signal: AbortSignal) => T | Promise<T>,
  options: { what: string; timeoutMs?: number; intervalMs?: number },
): Promise<Exclude<T, NotYet>> {
  const { what, timeoutMs = defaultTimeoutMs, intervalMs = defaultIntervalMs } = options;
  const deadline = performance.now() + timeoutMs;
  let failure: unknown;
  for (;;) {
    const leftMs = deadline - performance.now();
    try {
      const seen = await lookWithin(look, Math.max(leftMs, lastLookMs));
      failure = undefined;
      if (isThere(seen)) return seen;
    } catch (error) {
      failure = error;
    }
    if (leftMs <= 0) {
      const because = failure === undefined ? "" : `; the last look failed: ${messageOf(failure)}`;
      throw new Error(`Waited ${timeoutMs} ms in vain for ${what}${because}`, { cause: failure });
    }
    await pause(Math.min(intervalMs, Math.max(deadline - performance.now(), 0)));
  }
}

async function lookWithin<T>(look: (signal: AbortSignal) => T | Promise<T>, windowMs: number): Promise<T> {
  const cut = new AbortController();
  const closed = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const late = new Error("it did not come back");
    cut.abort(late);
    closed.reject(late);
  }, windowMs);
  try {
    return await Promise.race([look(cut.signal), closed.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function isThere<T>(seen: T): seen is Exclude<T, NotYet> {
  return seen !== false && seen !== null && seen !== undefined;
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, delayMs));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
