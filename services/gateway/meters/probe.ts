import type { Clock } from "#shared/process/clock.ts";

/** Longest wait for the broker or the key store when a gateway's readiness or metrics are read. */
export const probeWithinMs = 150;

/**
 * Returns how many milliseconds `ask` took, "failed" if it failed, or "late" if it took longer than `probeWithinMs`.
 */
export async function probe(clock: Clock, ask: () => Promise<unknown>): Promise<number | "failed" | "late"> {
  const askedAtMs = clock.now();
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = clock.after(probeWithinMs, () => resolve("late"));
  const answered = ask().then(
    () => clock.now() - askedAtMs,
    () => "failed" as const,
  );
  return Promise.race([answered, late]).finally(() => timer.cancel());
}
