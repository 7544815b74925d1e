/** The exit code that shells report for a command that Ctrl-C ended. */
export const interruptedCode = 130;

/** Returns a signal that aborts at the first Ctrl-C. The second Ctrl-C ends the process, as usual. */
export function untilInterrupted(): { readonly signal: AbortSignal; release(): void } {
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  process.once("SIGINT", interrupt);
  return { signal: interrupted.signal, release: () => void process.off("SIGINT", interrupt) };
}
