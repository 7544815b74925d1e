export const dayMs = 86_400_000;

/**
 * The clock of all other code, so that tests can replace it. `now` is monotonic and drives all decisions. `wall` is for
 * people and other hosts, and decides only about expiry dates.
 */
export interface Clock {
  /** Milliseconds since a fixed moment of this process. Never jumps. */
  now(): number;
  /** Milliseconds since 1970 by this host's clock. */
  wall(): number;
  after(delayMs: number, run: () => void): Timer;
  every(intervalMs: number, run: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

export const systemClock: Clock = {
  // `performance.now` itself, since each piece of an answer asks for the time seven times on its way.
  now: performance.now.bind(performance),
  wall: () => Date.now(),
  after(delayMs, run) {
    const handle = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
  every(intervalMs, run) {
    const handle = setInterval(run, intervalMs);
    return { cancel: () => clearInterval(handle) };
  },
};

export function isoTime(wallMs: number): string {
  return new Date(wallMs).toISOString();
}

/** Returns the day (UTC) of a time: `2026-01-31`. */
export function dayOf(wallMs: number): string {
  return isoTime(wallMs).slice(0, 10);
}

/** Resolves after the delay, or rejects with the signal's reason as soon as that aborts. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Returns a signal that aborts with `reason()` after the delay, unless it is disposed of before. */
export function abortAfter(
  clock: Pick<Clock, "after">,
  delayMs: number,
  reason: () => Error,
): Disposable & { readonly signal: AbortSignal } {
  const late = new AbortController();
  const timer = clock.after(delayMs, () => late.abort(reason()));
  return { signal: late.signal, [Symbol.dispose]: () => timer.cancel() };
}

/** Waits for work until the signal aborts, then rejects with the signal's reason, even if the work hangs. */
export function untilAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
    work.finally(() => signal.removeEventListener("abort", onAbort)).then(resolve, reject);
  });
}

/** Waits for work for a time. Afterwards its signal aborts, and the promise rejects with `reason()`. */
export async function within<Value>(
  clock: Pick<Clock, "after">,
  limitMs: number,
  reason: () => Error,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  using late = abortAfter(clock, limitMs, reason);
  return await untilAborted(late.signal, work(late.signal));
}
