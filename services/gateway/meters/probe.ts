import type { Clock } from "#shared/process/clock.ts";

/** Nobody who asks how a gateway is waits longer than this for what it stands on. */
export const probeWithinMs = 150;

/** How long something took to answer, or that it did not, or not in time. */
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
