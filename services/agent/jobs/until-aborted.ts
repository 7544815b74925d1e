/**
 * Waits for work, but no longer than the signal lets: then it rejects with the signal's reason, even if the work hangs. The
 * signal is the work's own: it is listened to for as long as there is one.
 */
export function untilAborted(signal: AbortSignal, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
    work.then(resolve, reject);
  });
}
