/**
 * Waits for work until the signal aborts, then rejects with the signal's reason, even if the work hangs. The signal
 * must belong to this work alone, since the listener stays as long as the signal exists.
 */
export function untilAborted(signal: AbortSignal, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
    work.then(resolve, reject);
  });
}
