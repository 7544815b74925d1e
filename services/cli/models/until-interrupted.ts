/** What a shell makes of a command that was ended by Ctrl-C. */
export const interruptedCode = 130;

/** A signal that aborts at the first Ctrl-C; the second one ends the process as it always does. */
export function untilInterrupted(): { readonly signal: AbortSignal; release(): void } {
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  process.once("SIGINT", interrupt);
  return { signal: interrupted.signal, release: () => void process.off("SIGINT", interrupt) };
}
