/** The exit code that shells report for a command that Ctrl-C ended. */
export const interruptedCode = 130;

/** Returns a signal that aborts at the first Ctrl-C, until it is disposed of. The second Ctrl-C ends the process, as usual. */
export function untilInterrupted(): Disposable & { readonly signal: AbortSignal } {
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  process.once("SIGINT", interrupt);
  return { signal: interrupted.signal, [Symbol.dispose]: () => void process.off("SIGINT", interrupt) };
}
